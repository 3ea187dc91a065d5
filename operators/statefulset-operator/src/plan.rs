//! Decides what one sync does about a StatefulSet's pods and their claims, and why.
//!
//! Reading order: `places` → `ordered` or `parallel` → `replica`, `condemned`, [`rolling`], [`stuck`] →
//! [`claim_work`] → `step`. The writes of a group of steps come after those of the group before.
//!
//! Upstream: `updateStatefulSet`, `pkg/controller/statefulset/stateful_set_control.go`.

pub mod claim;
pub mod claim_owners;
pub mod claim_work;
mod condemned;
pub mod ladder;
mod ordered;
mod parallel;
mod places;
pub mod pods;
pub mod reasons;
mod replica;
pub mod revisions;
pub mod rolling;
mod step;
pub mod stuck;

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::Uid;
use shared::working::decisions::{self, Reasoned};

use crate::flags::gates::FeatureGates;
use crate::objects::PodManagementPolicy;
use crate::objects::pod::Pod;
use crate::observe::Observed;
use places::{Known, Places};
use reasons::{Reason, Until, Waiting};
use revisions::Revisions;
pub use step::{ClaimsOfPod, Deletion, NewPod, PodUpdate, Step};
use stuck::Eviction;

/// The writes of one sync, group by group. A failure ends them, where pods do not wait for each other after the rest of
/// a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whether the steps of a group are carried out one after the other.
    pub is_ordered: bool,
    pub replicas: Vec<Step>,
    /// The steps about the claims of pods that are not asked for.
    pub condemned_claims: Vec<Step>,
    /// The steps about pods that are not asked for.
    pub condemned: Vec<Step>,
    pub outdated: Vec<Deletion>,
    /// The pod of an earlier revision that is replaced because the update does not get past it.
    pub stuck: Option<Eviction>,
    pub reason: Reason,
}

pub fn plan(observed: &Observed, revisions: &Revisions, gates: FeatureGates, now: Timestamp) -> Plan {
    let set = &*observed.set;
    if let Err(invalid) = &set.spec.selector {
        return Plan::nothing(Reason::InvalidSelector { error: invalid.clone() });
    }
    if set.metadata.is_being_deleted() {
        return Plan::nothing(Reason::BeingDeleted);
    }
    let known = Known { observed, revisions, places: Places::of(observed), gates, now };
    let (is_ordered, pods) = match set.spec.pod_management_policy {
        PodManagementPolicy::OrderedReady => (true, ordered::plan(&known)),
        PodManagementPolicy::Parallel => (false, parallel::plan(&known)),
    };
    let Pods { replicas, condemned_claims, condemned, outdated, stuck, waiting } = pods;
    let numbers = known.numbers();
    let reason = match waiting {
        Some(Wait { pod, until }) => Reason::Waiting(Waiting { pod, until, numbers }),
        None => Reason::Replicas(numbers),
    };
    Plan { is_ordered, replicas, condemned_claims, condemned, outdated, stuck, reason }
}

/// How many pods of a StatefulSet are unavailable, and how many may be.
pub fn unavailability(observed: &Observed, now: Timestamp) -> rolling::Unavailability {
    rolling::unavailability(&observed.set.spec, &Places::of(observed), now)
}

struct Wait {
    pod: Text,
    until: Until,
}

impl Wait {
    fn on(pod: &Pod, until: Until) -> Self {
        Self { pod: Text::new(pod.metadata.name()), until }
    }
}

/// The steps about pods, and the first pod that others wait for.
#[derive(Default)]
struct Pods {
    replicas: Vec<Step>,
    condemned_claims: Vec<Step>,
    condemned: Vec<Step>,
    outdated: Vec<Deletion>,
    stuck: Option<Eviction>,
    waiting: Option<Wait>,
}

impl Pods {
    /// The same, with another step about a pod that is asked for, unless it waits.
    fn and(mut self, step: Result<Step, Wait>) -> Self {
        match step {
            Ok(step) => {
                self.replicas.push(step);
                self
            }
            Err(wait) => self.waits(Some(wait)),
        }
    }

    fn waits(self, wait: Option<Wait>) -> Self {
        Self { waiting: self.waiting.or(wait), ..self }
    }

    fn deleted(&self) -> BTreeSet<Uid> {
        let deletions = self.replicas.iter().chain(&self.condemned).filter_map(|step| match step {
            Step::Delete(deletion) => Some(deletion.uid),
            Step::Create(_) | Step::CreateClaims(_) | Step::SetClaimOwners(_) | Step::Update(_) => None,
        });
        deletions.collect()
    }
}

impl Plan {
    /// Whether it copies a template of the spec: that of the pods of the update revision, or those of claims.
    pub fn copies_template(&self, revisions: &Revisions) -> bool {
        let copies = |step: &Step| match step {
            Step::Create(new) => new.revision == revisions.update || !new.claims.create.is_empty(),
            Step::CreateClaims(of) | Step::SetClaimOwners(of) => !of.claims.create.is_empty(),
            Step::Update(update) => !update.claims.create.is_empty(),
            Step::Delete(_) => false,
        };
        self.replicas.iter().chain(&self.condemned_claims).chain(&self.condemned).any(copies)
    }

    fn nothing(reason: Reason) -> Self {
        Self {
            is_ordered: true,
            replicas: Vec::new(),
            condemned_claims: Vec::new(),
            condemned: Vec::new(),
            outdated: Vec::new(),
            stuck: None,
            reason,
        }
    }

    pub fn is_empty(&self) -> bool {
        let Self { is_ordered: _, replicas, condemned_claims, condemned, outdated, stuck, reason: _ } = self;
        replicas.is_empty()
            && condemned_claims.is_empty()
            && condemned.is_empty()
            && outdated.is_empty()
            && stuck.is_none()
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

/// `create web-1 of web-5d4f, delete web-3 [too many] (1 of 3 available, 1 updated, 1 too many)`; `nothing (…)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_ordered: _, replicas, condemned_claims, condemned, outdated, stuck, reason } = self;
        let steps = replicas.iter().chain(condemned_claims).chain(condemned).map(ToString::to_string);
        let steps = steps.chain(outdated.iter().map(ToString::to_string));
        let steps: Vec<String> = steps.chain(stuck.iter().map(ToString::to_string)).collect();
        let shown = if steps.is_empty() { "nothing".to_owned() } else { list(&steps, Clone::clone) };
        write!(f, "{shown} ({reason})")
    }
}
