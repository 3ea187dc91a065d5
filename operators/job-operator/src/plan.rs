//! What one sync does about a Job's pods, and why.
//!
//! The second decision, which needs this one's outcome, is [`tracking`]'s; the third is
//! [`crate::status`]'s. Reading order: [`counts`] (the numbers) → [`ending`] (whether it ends) → [`mod@scale`] (which pods are
//! made or deleted) → [`tracking`] (what is counted). [`new_pod`] says what a pod looks like.
//! Left out: the order of the requests, which is apply's.

pub mod backoff;
pub mod counts;
pub mod ending;
pub mod indexed;
pub mod new_pod;
pub mod orphan;
pub mod pod_failure_policy;
pub mod scale;
pub mod success_policy;
pub mod tracking;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::list::list;
use shared::api::object::Kind;
use shared::api::owner::{Claim, claim};
use shared::api::selector::InvalidSelector;
use shared::runtime::expectations::Outstanding;

use crate::objects::CompletionMode;
use crate::objects::pod::Pod;
use crate::observe::Observed;
use counts::Counts;
use ending::{Ending, active_deadline, next_ending};
use new_pod::InvalidTemplate;
use scale::{NewPod, PodRef, Surplus, scale};

/// The first writes of one sync: claims, and only if none of them fails, pods.
#[derive(Debug, PartialEq)]
pub struct Plan {
    /// Which pods are the Job's. Pods in any phase are claimed.
    pub claim: Claim<Pod>,
    /// The pods to make or delete.
    pub pods: Pods,
    /// Whether and why the Job is to end.
    pub ending: Option<Ending>,
    /// Creations and deletions that the cache has not shown yet. They may change the numbers, so no Job ends before.
    pub outstanding: Option<Outstanding>,
    /// When to look again, should nothing happen before.
    pub wake: Option<Duration>,
    /// The numbers behind the decision; none if there is nothing to do about this Job at all.
    pub counts: Option<Counts>,
}

/// What to do about the pods.
#[derive(Debug, PartialEq)]
pub enum Pods {
    /// Nothing.
    Leave(Reason),
    /// The Job ends: every active pod is deleted, and counted afterwards.
    End(Vec<PodRef>),
    /// The Job goes on: some pods are deleted, and never counted.
    Delete(Vec<Surplus>),
    /// Some are made.
    Create(Vec<NewPod>),
}

/// Why no pod is made or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The Job is over.
    Finished,
    /// Another controller looks after it.
    ManagedBy(Box<str>),
    /// Its completion mode is newer than this build.
    UnknownCompletionMode,
    /// Its selector cannot be read.
    InvalidSelector(InvalidSelector),
    /// So many are active, and so many are wanted.
    Active {
        /// Pods that run or wait for a node.
        active: usize,
        /// How many should.
        wanted: usize,
    },
    /// Fewer are active than wanted, but every index is done or taken.
    NoIndexLeft {
        /// Pods that run or wait for a node.
        active: usize,
        /// How many should.
        wanted: usize,
    },
    /// Pods are missing, and the template makes none.
    InvalidTemplate(InvalidTemplate),
    /// Pods have failed: the next ones come later.
    Backoff(Duration),
    /// The cache has not seen the last writes yet.
    Waiting(Outstanding),
    /// The Job is being deleted; its pods are the garbage collector's.
    BeingDeleted,
}

/// Decides what to do about the pods of a Job.
///
/// Upstream: `syncJob`, `pkg/controller/job/job_controller.go`, up to `manageJob`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let job = &observed.job;
    let selector = match (&job.spec.selector, &job.spec.completion_mode) {
        _ if job.external_controller().is_some() => {
            let name = job.external_controller().unwrap_or_default();
            return Plan::leave(Reason::ManagedBy(name.into()));
        }
        _ if job.status.is_finished() => return Plan::leave(Reason::Finished),
        (_, CompletionMode::Other(_)) => return Plan::leave(Reason::UnknownCompletionMode),
        (Err(invalid), _) => return Plan::leave(Reason::InvalidSelector(invalid.clone())),
        (Ok(selector), _) => selector,
    };
    let mut candidates: Vec<Arc<Pod>> = observed.pods.clone();
    candidates.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    let claim = claim(&job.owner(), candidates, |pod| selector.matches(&pod.metadata.labels));
    let counts = Counts::new(observed, &claim, now);
    let ending = next_ending(&counts, now);
    let deadline = active_deadline(&counts, now).filter(|_| ending.is_none());
    let (pods, wait) = match (&ending, observed.outstanding) {
        (Some(_), _) => (end(&counts), None),
        (None, _) if job.metadata.is_being_deleted() => (Pods::Leave(Reason::BeingDeleted), None),
        (None, Some(outstanding)) => (Pods::Leave(Reason::Waiting(outstanding)), None),
        (None, None) => scale(&counts, now),
    };
    let expired = observed.outstanding.map(|outstanding| outstanding.remaining(now));
    let wake = deadline.into_iter().chain(wait).chain(expired).min();
    Plan { claim, pods, ending, outstanding: observed.outstanding, wake, counts: Some(counts) }
}

fn end(counts: &Counts) -> Pods {
    Pods::End(counts.active().map(|pod| PodRef::of(pod, counts)).collect())
}

impl Plan {
    fn leave(reason: Reason) -> Self {
        let (claim, pods) = (Claim::default(), Pods::Leave(reason));
        Self { claim, pods, ending: None, outstanding: None, wake: None, counts: None }
    }

    /// Whether there is nothing to write to pods.
    pub fn is_empty(&self) -> bool {
        let Self { claim, pods, ending: _, outstanding: _, wake: _, counts: _ } = self;
        let leaves = match pods {
            Pods::Leave(_) => true,
            Pods::End(pods) => pods.is_empty(),
            Pods::Delete(surplus) => surplus.is_empty(),
            Pods::Create(new) => new.is_empty(),
        };
        leaves && claim.is_settled()
    }
}

/// `create 2 (0, 1)`; `delete web-a (not ready)`; `Failed: BackoffLimitExceeded; end web-a`; `nothing (2 of 2 active)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, pods, ending, outstanding, wake: _, counts: _ } = self;
        let mut steps = Vec::new();
        if !claim.is_settled() {
            steps.push(claim.to_string());
        }
        steps.extend(ending.as_ref().map(ToString::to_string));
        match pods {
            Pods::Leave(reason) if steps.is_empty() => steps.push(format!("nothing ({reason})")),
            Pods::Leave(_) => {}
            Pods::End(pods) => {
                if !pods.is_empty() {
                    steps.push(format!("end {}", list(pods, |pod| pod.key.name().to_owned())));
                }
                steps.extend(outstanding.map(|outstanding| Reason::Waiting(outstanding).to_string()));
            }
            Pods::Delete(surplus) if surplus.is_empty() => steps.push("nothing (none to delete)".to_owned()),
            Pods::Delete(surplus) => {
                let shown = list(surplus, |Surplus { pod, why }| format!("{} ({why})", pod.key.name()));
                steps.push(format!("delete {shown}"));
            }
            Pods::Create(new) => {
                let indexes: Vec<i32> = new.iter().filter_map(|pod| pod.index).collect();
                let of = indexed::OrderedIntervals::default().with(indexes);
                let of = if of.is_empty() { String::new() } else { format!(" (index {of})") };
                steps.push(format!("create {}{of}", new.len()));
            }
        }
        f.write_str(&steps.join("; "))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::ManagedBy(name) => write!(f, "managed by {name}"),
            Self::UnknownCompletionMode => f.write_str("unknown completion mode"),
            Self::InvalidSelector(invalid) => write!(f, "invalid selector: {invalid}"),
            Self::Active { active, wanted } => write!(f, "{active} of {wanted} active"),
            Self::NoIndexLeft { active, wanted } => write!(f, "{active} of {wanted} active, no index left"),
            Self::InvalidTemplate(invalid) => write!(f, "{invalid}"),
            Self::Backoff(wait) => write!(f, "waiting {}s after failures", wait.as_secs()),
            Self::Waiting(outstanding) => write!(f, "waiting to see {outstanding}"),
            Self::BeingDeleted => f.write_str("being deleted"),
        }
    }
}
