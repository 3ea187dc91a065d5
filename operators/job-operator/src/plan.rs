//! The first stage of a sync: which pods of a Job are created or deleted. [`tracking`] is the second, [`crate::status`]
//! the last.
//!
//! Reading order: [`counts`] (the numbers) → [`ending`] (whether the Job ends) → [`mod@scale`] (which pods are created
//! or deleted, as [`new_pod`] builds them) → [`tracking`] (which pods are counted).

pub mod counts;
pub mod ending;
pub mod indexed;
pub mod new_pod;
pub mod orphan;
pub mod pod_failure_policy;
pub mod reasons;
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
use shared::controllers::live_spec::{NotCached, read_spec};
use shared::working::decisions::{self, LiveRead, Reasoned};
use shared::working::expectations::Outstanding;

use crate::objects::CompletionMode;
use crate::objects::pod::Pod;
use crate::observe::Observed;
use counts::Counts;
use ending::{Ending, active_deadline, next_ending};
use new_pod::{InvalidTemplate, NewPod};
use reasons::Reason;
use scale::{PodRef, Scaled, Surplus, scale};
use tracking::Executed;

/// The decision of the first stage: claims, and if all of them succeed, pods.
#[derive(Debug, PartialEq)]
pub struct Plan {
    pub claim: Claim<Pod>,
    pub pods: Pods,
    pub reason: Reason,
    /// Whether and why the Job is to end.
    pub ending: Option<Ending>,
    /// Creations and deletions that the cache has not seen. No Job ends before, because they may change the numbers.
    pub outstanding: Option<Outstanding>,
    /// When to sync again at the latest, and the purpose.
    pub wake: Option<(Duration, &'static str)>,
    /// The numbers behind the decision; none if the Job is left alone.
    pub counts: Option<Counts>,
}

#[derive(Debug, PartialEq)]
pub enum Pods {
    Leave,
    /// Delete every active pod of an ending Job, and count it afterwards.
    End(Vec<PodRef>),
    /// Delete some pods of a running Job, and never count them.
    Delete(Vec<Surplus>),
    Create(Vec<NewPod>),
}

/// Plans to read the template if pods are made of it and the cache has no room for it.
pub fn plan_template_read(observed: &Observed, now: Timestamp) -> Option<LiveRead<NotCached>> {
    let live_read = read_spec(&*observed.job)?;
    let is_needed = |reason| matches!(reason, Reason::InvalidTemplate { error: InvalidTemplate::NotRead });
    is_needed(plan(observed, now).reason).then_some(live_read)
}

/// Decides on the pods of a Job.
///
/// Upstream: `syncJob`, `pkg/controller/job/job_controller.go`, up to `manageJob`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let job = &observed.job;
    if let Some(controller) = job.external_controller() {
        return Plan::leave(Reason::ManagedBy { controller: controller.into() });
    }
    if let Some(finished) = Reason::finished(job) {
        return Plan::leave(finished);
    }
    let selector = match (&job.spec.selector, &job.spec.completion_mode) {
        (_, CompletionMode::Other(mode)) => return Plan::leave(Reason::UnknownCompletionMode { mode: mode.clone() }),
        (Err(invalid), _) => return Plan::leave(Reason::InvalidSelector { error: invalid.clone() }),
        (Ok(selector), _) => selector,
    };
    let mut candidates: Vec<Arc<Pod>> = observed.pods.clone();
    candidates.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    let claim = claim(&job.owner(), candidates, |pod| selector.matches(&pod.metadata.labels));
    let counts = Counts::new(observed, &claim, now);
    let ending = next_ending(&counts, now);
    let deadline = active_deadline(&counts, now).filter(|_| ending.is_none());
    let Scaled { pods, reason, wait } = match (&ending, observed.outstanding) {
        (Some(ending), _) => Scaled { pods: end(&counts), reason: Reason::ends(ending, &counts), wait: None },
        (None, _) if job.metadata.is_being_deleted() => Scaled::leave(Reason::BeingDeleted),
        (None, Some(outstanding)) => Scaled::leave(Reason::Waiting(outstanding)),
        (None, None) => scale(&counts, now),
    };
    let looks = [
        deadline.map(|delay| (delay, "its active deadline")),
        wait.map(|delay| (delay, "the back-off of its pods")),
        observed.outstanding.map(|outstanding| (outstanding.remaining(now), "the end of its expectations")),
    ];
    let wake = looks.into_iter().flatten().min_by_key(|(delay, _)| *delay);
    Plan { claim, pods, reason, ending, outstanding: observed.outstanding, wake, counts: Some(counts) }
}

fn end(counts: &Counts) -> Pods {
    Pods::End(counts.active().map(|pod| PodRef::of(pod, counts)).collect())
}

impl Plan {
    fn leave(reason: Reason) -> Self {
        let claim = Claim::default();
        Self { claim, pods: Pods::Leave, reason, ending: None, outstanding: None, wake: None, counts: None }
    }

    /// The result of executing it, if it writes no pods.
    pub fn into_unwritten(self) -> Option<Executed> {
        let is_empty = self.is_empty();
        let Self { claim: _, pods: _, reason: _, ending, outstanding: _, wake: _, counts } = self;
        is_empty.then(|| Executed { counts, ending, ..Executed::default() })
    }

    pub fn is_empty(&self) -> bool {
        let Self { claim, pods, reason: _, ending: _, outstanding: _, wake: _, counts: _ } = self;
        let leaves = match pods {
            Pods::Leave => true,
            Pods::End(pods) => pods.is_empty(),
            Pods::Delete(surplus) => surplus.is_empty(),
            Pods::Create(new) => new.is_empty(),
        };
        leaves && claim.is_settled()
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

/// `create 2 (0, 1)`; `delete web-a (not ready)`; `Failed: BackoffLimitExceeded; end web-a`; `nothing (2 of 2 active)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, pods, reason, ending, outstanding, wake: _, counts: _ } = self;
        let mut steps = Vec::new();
        if !claim.is_settled() {
            steps.push(claim.to_string());
        }
        steps.extend(ending.as_ref().map(ToString::to_string));
        match pods {
            Pods::Leave if steps.is_empty() => steps.push(format!("nothing ({reason})")),
            Pods::Leave => {}
            Pods::End(pods) => {
                if !pods.is_empty() {
                    steps.push(format!("end {}", list(pods, |pod| pod.key.name().to_owned())));
                }
                steps.extend(outstanding.map(|outstanding| Reason::Waiting(outstanding).to_string()));
            }
            Pods::Delete(surplus) if surplus.is_empty() => steps.push(format!("nothing ({reason})")),
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
