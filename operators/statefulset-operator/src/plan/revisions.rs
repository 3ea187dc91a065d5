//! The revision of the template of now, and the end of old ones: the second stage of a sync and the last one.
//!
//! Left out: the order of a history and the bytes of a revision, which are [`shared::controllers::revisions`]'.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use shared::api::intern::Text;
use shared::controllers::revisions::data::{Data, Fingerprint, Numbers, Unreadable};
use shared::controllers::revisions::defaults::{Unknown, only_lacks, read_revision};
use shared::controllers::revisions::history::{Place, beyond_limit, find, next_number};
use shared::controllers::revisions::truncation::{Truncation, TruncationReason};
use shared::controllers::revisions::{ControllerRevision, NewRevision};
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::observe::Observed;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revisions {
    /// The revision of pods that are not updated yet.
    pub current: Text,
    pub update: Text,
    /// How often the name of a new revision was taken.
    pub collision_count: i32,
}

/// The decision about the revision of the template of now.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionPlan {
    pub update: Update,
    pub reason: RevisionReason,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// The last one of the history.
    Keep(Text),
    /// An earlier one, which becomes the last one.
    Renumber { revision: Arc<ControllerRevision>, to: i64 },
    /// The last one of the history, which gets a label because it lacks defaults of the template.
    Label { revision: Arc<ControllerRevision>, data: Fingerprint },
    /// One that is not there yet.
    Create(Box<NewRevision>),
}

/// Why a revision is written, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RevisionReason {
    /// The last revision has the template.
    Unchanged,
    /// The last revision has the template as another release wrote it.
    UnchangedButForItsBytes,
    /// The last revision has the template but for defaults that the apiserver began to set.
    UnchangedButForDefaults,
    RolledBack,
    NewTemplate,
}

/// Plans to read the newest revision if the template of now is not its own, although its generation was observed with
/// that revision.
pub fn plan_live_read(observed: &Observed) -> Result<Option<LiveRead<Unknown>>, Unreadable> {
    let set = &*observed.set;
    let Some(last) = observed.revisions.last().filter(|_| observed.newest_data.is_none()) else { return Ok(None) };
    let was_observed = set.status.observed_generation == set.metadata.generation
        && *set.status.update_revision == *last.metadata.name();
    let wanted = Fingerprint::of_template(&set.spec.template, Numbers::Floats)?;
    let differs = matches!(find(&observed.revisions, wanted), Place::Earlier(_) | Place::None);
    Ok((was_observed && differs).then(|| read_revision(last)))
}

/// Decides which revision the template of now has. `newest_data` were read only if it was not edited.
///
/// Upstream: `getStatefulSetRevisions`, `pkg/controller/statefulset/stateful_set_control.go`.
pub fn plan_revisions(observed: &Observed) -> Result<RevisionPlan, Unreadable> {
    let (set, history) = (&*observed.set, &observed.revisions);
    let wanted = Fingerprint::of_template(&set.spec.template, Numbers::Floats)?;
    if let (Some(data), Some(last)) = (&observed.newest_data, history.last())
        && only_lacks(data, &Data::of(&set.spec.template, Numbers::Floats)?)
    {
        let update = Update::Label { revision: Arc::clone(last), data: wanted };
        return Ok(RevisionPlan { update, reason: RevisionReason::UnchangedButForDefaults });
    }
    let next = next_number(history);
    let (update, reason) = match find(history, wanted) {
        Place::Last(last) => (Update::Keep(name(&last)), RevisionReason::Unchanged),
        Place::LastInOtherBytes(last) => (Update::Keep(name(&last)), RevisionReason::UnchangedButForItsBytes),
        Place::Earlier(revision) => (Update::Renumber { revision, to: next }, RevisionReason::RolledBack),
        Place::None => {
            let data = Data::of(&set.spec.template, Numbers::Floats)?;
            let labels = set.spec.template.labels();
            let new = NewRevision::new(set.metadata.name(), &labels, data, next, collision_count(observed));
            (Update::Create(Box::new(new)), RevisionReason::NewTemplate)
        }
    };
    Ok(RevisionPlan { update, reason })
}

fn name(revision: &ControllerRevision) -> Text {
    Text::new(revision.metadata.name())
}

pub fn collision_count(observed: &Observed) -> i32 {
    observed.set.status.collision_count.unwrap_or(0)
}

/// The revisions of the pods, once the template of now has this one. Without a current one, it is that too.
pub fn revisions_with(observed: &Observed, update: Text, collision_count: i32) -> Revisions {
    let current = &observed.set.status.current_revision;
    let is_known = observed.revisions.iter().any(|revision| *revision.metadata.name() == **current);
    let current = if is_known { current.clone() } else { update.clone() };
    Revisions { current, update, collision_count }
}

impl RevisionPlan {
    /// The revisions of the pods, where nothing needs to be written for them.
    pub fn settled(&self, observed: &Observed) -> Option<Revisions> {
        match &self.update {
            Update::Keep(name) => Some(revisions_with(observed, name.clone(), collision_count(observed))),
            Update::Renumber { .. } | Update::Label { .. } | Update::Create(_) => None,
        }
    }
}

impl Reasoned for RevisionPlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl decisions::Reason for RevisionReason {}

/// `create revision web-7cd77cbbd9 as number 3 (the template is new)`.
impl fmt::Display for RevisionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { update, reason } = self;
        match update {
            Update::Keep(name) => write!(f, "keep revision {name}"),
            Update::Renumber { revision, to } => {
                write!(f, "number revision {} {}→{to}", revision.metadata.name(), revision.revision)
            }
            Update::Label { revision, data: _ } => write!(f, "label revision {}", revision.metadata.name()),
            Update::Create(new) => write!(f, "create revision {} as number {}", new.name, new.revision),
        }?;
        write!(f, " ({reason})")
    }
}

impl fmt::Display for RevisionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "the template is unchanged",
            Self::UnchangedButForItsBytes => "the template is unchanged but for its bytes",
            Self::UnchangedButForDefaults => "the template is unchanged but for defaults",
            Self::RolledBack => "the template is an earlier one",
            Self::NewTemplate => "the template is new",
        })
    }
}

/// Decides which revisions go. Those of the status and those of any pod stay.
///
/// Upstream: `truncateHistory`, `stateful_set_control.go`.
pub fn plan_truncation(observed: &Observed, revisions: &Revisions) -> Truncation {
    let Revisions { current, update, collision_count: _ } = revisions;
    let limit = observed.set.spec.revision_history_limit;
    let is_in_use = |revision: &ControllerRevision| {
        let name = revision.metadata.name();
        **current == *name || **update == *name || observed.pods.iter().any(|pod| pod.revision() == name)
    };
    let delete = beyond_limit(&observed.revisions, limit, is_in_use);
    Truncation { delete, reason: TruncationReason::HistoryLimit { limit } }
}
