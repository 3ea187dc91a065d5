//! The revision of the current template, and the deletion of old revisions: the second and the last stage of a sync.
//!
//! A revision belongs to a template only if it has the same bytes, or lacks nothing but defaults. If another release
//! wrote the revision of a DaemonSet in other bytes, the DaemonSet gets one more revision. Its pods stay, because they
//! carry the generation, too.
//! Left out: the order of a history and the bytes of a revision, which are [`shared::controllers::revisions`]'.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::controllers::revisions::data::{Data, Fingerprint, Numbers, Unreadable};
use shared::controllers::revisions::defaults::{Unknown, only_lacks, read_revision};
use shared::controllers::revisions::history::{next_number, surplus};
use shared::controllers::revisions::truncation::{Truncation, TruncationReason};
use shared::controllers::revisions::{ControllerRevision, NewRevision, REVISION_LABEL};
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::pod::Pod;
use crate::observe::Observed;

/// The history of a DaemonSet, once the template of now has a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisions {
    /// The hash of the revision of the template of now, which new pods carry.
    pub hash: Text,
    /// The others, in order.
    pub old: Vec<Arc<ControllerRevision>>,
}

/// The decision about the revision of the template of now. It is carried out in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionPlan {
    /// Revisions that get a label with their own names as hashes.
    pub label: Vec<Arc<ControllerRevision>>,
    /// The write that the revision of the template needs.
    pub update: Update,
    /// The pods that get the hash of the kept revision, because those of its duplicates go.
    pub relabel: Vec<Arc<Pod>>,
    pub delete: Vec<Arc<ControllerRevision>>,
    pub reason: RevisionReason,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// It is there, and the last one.
    Keep(Arc<ControllerRevision>),
    /// It is there, and becomes the last one.
    Renumber { revision: Arc<ControllerRevision>, to: i64 },
    /// It is there, and the last one, and gets a label because it lacks defaults of the template.
    Label { revision: Arc<ControllerRevision>, data: Fingerprint },
    /// It is not there yet.
    Create { new: Box<NewRevision>, hash: Text },
}

/// Why a revision is written, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RevisionReason {
    /// The last revision has the template.
    Unchanged,
    /// The last revision has the template but for defaults that the apiserver began to set.
    UnchangedButForDefaults,
    RolledBack,
    NewTemplate,
}

/// Plan to read the newest revision if the template is not its own, although this generation was observed. A pod of
/// this template with another hash shows that the revision of this generation was deleted.
pub fn plan_live_read(observed: &Observed) -> Result<Option<LiveRead<Unknown>>, Unreadable> {
    let set = &*observed.set;
    let Some(last) = observed.revisions.last().filter(|_| observed.newest_data.is_none()) else { return Ok(None) };
    let is_edited = set.status.observed_generation != set.metadata.generation;
    let has_other_hash = |pod: &Arc<Pod>| pod.is_updated("", set.template_generation) && !pod.has_hash(last.pod_hash());
    let is_its_own = last.is_of(Fingerprint::of_template(&set.spec.template, Numbers::Integers)?);
    let is_needed = !is_its_own && !is_edited && !observed.pods.iter().any(has_other_hash);
    Ok(is_needed.then(|| read_revision(last)))
}

/// Decides which revision the template of now has. `newest_data` were read only if it was not edited.
///
/// Upstream: `constructHistory`, `dedupCurHistories` and `snapshot`, `pkg/controller/daemon/update.go`.
pub fn plan_revisions(observed: &Observed) -> Result<RevisionPlan, Unreadable> {
    let set = &*observed.set;
    let wanted = Fingerprint::of_template(&set.spec.template, Numbers::Integers)?;
    if let (Some(data), Some(last)) = (&observed.newest_data, observed.revisions.last())
        && only_lacks(data, &Data::of(&set.spec.template, Numbers::Integers)?)
    {
        let update = Update::Label { revision: Arc::clone(last), data: wanted };
        let (label, relabel, delete) = Default::default();
        return Ok(RevisionPlan { label, update, relabel, delete, reason: RevisionReason::UnchangedButForDefaults });
    }
    let (mut current, old): (Vec<_>, Vec<_>) =
        observed.revisions.iter().cloned().partition(|revision| revision.is_of(wanted));
    let is_unlabelled = |revision: &&Arc<ControllerRevision>| revision.metadata.labels.get(REVISION_LABEL).is_none();
    let label = observed.revisions.iter().filter(is_unlabelled).cloned().collect();
    let next = next_number(&old);
    let Some(kept) = current.pop() else {
        let hash = set.spec.template.hash(set.status.collision_count);
        let data = Data::of(&set.spec.template, Numbers::Integers)?;
        let labels = set.spec.template.labels();
        let new = NewRevision::of_daemon_set(set.metadata.name(), &labels, data, next, &hash);
        let update = Update::Create { new: Box::new(new), hash: Text::new(&hash) };
        let (relabel, delete, reason) = (Vec::new(), Vec::new(), RevisionReason::NewTemplate);
        return Ok(RevisionPlan { label, update, relabel, delete, reason });
    };
    let is_other = |pod: &&Arc<Pod>| !current.is_empty() && !pod.has_hash(kept.pod_hash());
    let relabel = observed.pods.iter().filter(is_other).cloned().collect();
    let (update, reason) = if kept.revision < next {
        (Update::Renumber { revision: kept, to: next }, RevisionReason::RolledBack)
    } else {
        (Update::Keep(kept), RevisionReason::Unchanged)
    };
    Ok(RevisionPlan { label, update, relabel, delete: current, reason })
}

impl RevisionPlan {
    pub fn is_settled(&self) -> bool {
        let Self { label, update, relabel, delete, reason: _ } = self;
        matches!(update, Update::Keep(_)) && label.is_empty() && relabel.is_empty() && delete.is_empty()
    }

    /// The hash that pods of the template of now carry.
    pub fn hash(&self) -> Text {
        match &self.update {
            Update::Keep(revision) | Update::Renumber { revision, to: _ } | Update::Label { revision, data: _ } => {
                Text::new(revision.pod_hash())
            }
            Update::Create { new: _, hash } => hash.clone(),
        }
    }

    /// The history once this is carried out.
    pub fn revisions(&self, observed: &Observed) -> Revisions {
        let kept = match &self.update {
            Update::Keep(kept)
            | Update::Renumber { revision: kept, to: _ }
            | Update::Label { revision: kept, data: _ } => Some(kept),
            Update::Create { new: _, hash: _ } => None,
        };
        let is_old = |revision: &&Arc<ControllerRevision>| kept != Some(*revision) && !self.delete.contains(*revision);
        Revisions { hash: self.hash(), old: observed.revisions.iter().filter(is_old).cloned().collect() }
    }
}

impl Reasoned for RevisionPlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl decisions::Reason for RevisionReason {}

fn names(revisions: &[Arc<ControllerRevision>]) -> String {
    list(revisions, |revision| revision.metadata.name().to_owned())
}

/// `create revision web-7cd77cbbd9 as number 3 (the template is new)`.
impl fmt::Display for RevisionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, update, relabel, delete, reason } = self;
        if !label.is_empty() {
            write!(f, "label revisions {}; ", names(label))?;
        }
        match update {
            Update::Keep(revision) => write!(f, "keep revision {}", revision.metadata.name()),
            Update::Renumber { revision, to } => {
                write!(f, "number revision {} {}→{to}", revision.metadata.name(), revision.revision)
            }
            Update::Label { revision, data: _ } => write!(f, "label revision {}", revision.metadata.name()),
            Update::Create { new, hash: _ } => write!(f, "create revision {} as number {}", new.name, new.revision),
        }?;
        if !relabel.is_empty() {
            write!(f, "; label {}", list(relabel, |pod| pod.metadata.name().to_owned()))?;
        }
        if !delete.is_empty() {
            write!(f, "; delete its duplicates {}", names(delete))?;
        }
        write!(f, " ({reason})")
    }
}

impl fmt::Display for RevisionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "the template is unchanged",
            Self::UnchangedButForDefaults => "the template is unchanged but for defaults",
            Self::RolledBack => "the template is an earlier one",
            Self::NewTemplate => "the template is new",
        })
    }
}

/// Decides which revisions go. Those of any pod with a node stay, whatever has become of the
/// pod.
///
/// Upstream: `cleanupHistory`, `update.go`.
pub fn plan_truncation(observed: &Observed, revisions: &Revisions) -> Truncation {
    let Revisions { hash: _, old } = revisions;
    let limit = observed.set.spec.revision_history_limit;
    let placed = || observed.pods.iter().filter(|pod| pod.node().is_some());
    let is_in_use = |revision: &ControllerRevision| placed().any(|pod| pod.has_hash(revision.pod_hash()));
    Truncation { delete: surplus(old, limit, is_in_use), reason: TruncationReason::HistoryLimit { limit } }
}
