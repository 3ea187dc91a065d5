//! Decides what one sync does about an owner's pods, and why.
//!
//! Left out: the order of the writes, which is apply's, and what becomes of one that fails.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::ReplicaOwner;
use super::observe::Observed;
use super::pod::Pod;
use crate::api::intern::Text;
use crate::api::list::list;
use crate::api::object::{Key, Uid};
use crate::api::owner::{Claim, claim};
use crate::api::pod::ranking::{Rule, Scale, first_to_go};
use crate::api::pod::{Phase, PodView};
use crate::api::selector::{InvalidSelector, Selector};
use crate::controllers::live_spec::{NotCached, read_spec};
use crate::controllers::rejections::Held;
use crate::working::decisions::{self, LiveRead, Reasoned};
use crate::working::expectations::Outstanding;

/// The most pods that one sync creates or deletes; the next one waits until these were seen.
///
/// Upstream: `BurstReplicas`, `pkg/controller/replicaset/replica_set.go`.
pub const BURST_REPLICAS: usize = 500;

/// The writes of one sync: first the claims, and only if none of them fails, the rest.
#[derive(Debug, PartialEq)]
pub struct Plan {
    /// Which active pods are the owner's, by key. Pods that have ended or are being deleted are neither adopted nor
    /// released.
    pub claim: Claim<Pod>,
    /// How many pods to make.
    pub create: usize,
    /// The pods to delete, first to go first.
    pub delete: Vec<Deletion>,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub key: Key,
    /// Its identity: another pod of the same name stays.
    pub uid: Uid,
    /// The rule that sets it apart from the pods that stay.
    pub rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// The number of active pods beside the wanted number.
    Replicas {
        /// The pods that count, those to be adopted included.
        active: usize,
        wanted: usize,
    },
    /// As many as that, but nodes reject the pods, so that some of those that are missing wait.
    HeldBack {
        /// The pods that count, those to be adopted included.
        active: usize,
        wanted: usize,
        held: Held,
    },
    /// The cache has not seen the last writes yet.
    Waiting(Outstanding),
    /// The owner is being deleted; its pods are the garbage collector's.
    BeingDeleted,
    InvalidSelector {
        error: InvalidSelector,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unknown {
    /// Whether these pods were rejected by their nodes.
    Ended { pods: Vec<String> },
}

/// Plans a live read where others are to take the places of pods that have ended without having been seen to run.
pub fn plan_live_read<T: ReplicaOwner>(observed: &Observed<T>, now: Timestamp) -> Option<LiveRead<Unknown>> {
    if observed.ended.is_empty() {
        return None;
    }
    let is_needed = match plan(observed, now).reason {
        Reason::Replicas { active, wanted } | Reason::HeldBack { active, wanted, held: _ } => active < wanted,
        Reason::Waiting(_) | Reason::BeingDeleted | Reason::InvalidSelector { error: _ } => false,
    };
    let pods = || observed.ended.iter().map(|pod| pod.key.name().to_owned()).collect();
    let step = "read pods that have ended";
    is_needed.then(|| LiveRead { step, reason: Unknown::Ended { pods: pods() } })
}

/// Plans to read the template if pods are made of it and the cache has no room for it.
pub fn plan_template_read<T: ReplicaOwner>(observed: &Observed<T>, now: Timestamp) -> Option<LiveRead<NotCached>> {
    read_spec(&*observed.owner).filter(|_| plan(observed, now).create > 0)
}

/// Decides what to do about the pods of an owner. Where nodes reject them, upstream replaces them at once.
///
/// Upstream: `syncReplicaSet` and `manageReplicas`, `pkg/controller/replicaset/replica_set.go`.
pub fn plan<T: ReplicaOwner>(observed: &Observed<T>, now: Timestamp) -> Plan {
    let owner = &*observed.owner;
    let selector = match &owner.spec().selector {
        Ok(selector) => selector,
        Err(invalid) => return Plan::nothing(Reason::InvalidSelector { error: invalid.clone() }),
    };
    let claim = claim_active(observed, selector);
    let mut plan = Plan { claim, ..Plan::nothing(Reason::BeingDeleted) };
    if owner.meta().is_being_deleted() {
        return plan;
    }
    if let Some(outstanding) = observed.outstanding {
        plan.reason = Reason::Waiting(outstanding);
        return plan;
    }
    let claimed: Vec<&Pod> = plan.claim.owned.iter().chain(&plan.claim.adopt).map(|pod| &**pod).collect();
    let (active, wanted) = (claimed.len(), owner.spec().wanted());
    let under_way = claimed.iter().filter(|pod| pod.phase != Phase::Running && !pod.is_unschedulable).count();
    let (allowed, held) = observed.rejections.allow("", wanted.saturating_sub(active), under_way, now);
    plan.reason = match held {
        Some(held) => Reason::HeldBack { active, wanted, held },
        None => Reason::Replicas { active, wanted },
    };
    plan.create = allowed.min(BURST_REPLICAS);
    plan.delete = deletions(&claimed, &observed.related, active.saturating_sub(wanted), now);
    plan
}

fn claim_active<T: ReplicaOwner>(observed: &Observed<T>, selector: &Selector) -> Claim<Pod> {
    let mut active: Vec<Arc<Pod>> = observed.pods.iter().filter(|pod| pod.is_active()).cloned().collect();
    active.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    claim(&observed.owner.owner(), active, |pod| selector.matches(&pod.metadata.labels))
}

/// Upstream: `getPodsToDelete` and `getPodsRankedByRelatedPodsOnSameNode`, `pkg/controller/replicaset/replica_set.go`.
fn deletions(claimed: &[&Pod], related: &[Arc<Pod>], surplus: usize, now: Timestamp) -> Vec<Deletion> {
    if surplus == 0 {
        return Vec::new();
    }
    let mut on_node: BTreeMap<&Text, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| pod.is_active()) {
        *on_node.entry(&pod.node).or_default() += 1;
    }
    let colocated = |pod: &Pod| on_node.get(&pod.node).copied().unwrap_or(0);
    let standings: Vec<_> = claimed.iter().map(|pod| pod.standing(colocated(pod))).collect();
    // Ranked against those that stay in the end, which more than a burst away are not those that stay for now.
    let chosen = first_to_go(&standings, surplus, Scale::Logarithmic(now));
    let deletion = |(at, rule): (usize, Rule)| {
        let meta = &claimed[at].metadata;
        Deletion { key: meta.key.clone(), uid: meta.uid, rule }
    };
    chosen.into_iter().take(BURST_REPLICAS).map(deletion).collect()
}

impl Plan {
    fn nothing(reason: Reason) -> Self {
        Self { claim: Claim::default(), create: 0, delete: Vec::new(), reason }
    }

    pub fn is_empty(&self) -> bool {
        let Self { claim, create, delete, reason: _ } = self;
        claim.is_settled() && *create == 0 && delete.is_empty()
    }
}

/// `adopt web-x; create 3 (2 of 5 active)`; `delete web-a (not ready), web-b (newer)`; `nothing (5 of 5 active)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, create, delete, reason } = self;
        let mut steps = Vec::new();
        if !claim.is_settled() {
            steps.push(claim.to_string());
        }
        if *create > 0 {
            steps.push(format!("create {create} ({reason})"));
        }
        if !delete.is_empty() {
            let deletions = list(delete, |Deletion { key, uid: _, rule }| format!("{} ({rule})", key.name()));
            steps.push(format!("delete {deletions}"));
        }
        if steps.is_empty() { write!(f, "nothing ({reason})") } else { f.write_str(&steps.join("; ")) }
    }
}

impl decisions::Reason for Reason {}

impl decisions::Reason for Unknown {}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Ended { pods } = self;
        write!(f, "{} did not run", list(pods, Clone::clone))
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicas { active, wanted } => write!(f, "{active} of {wanted} active"),
            Self::HeldBack { active, wanted, held } => write!(f, "{active} of {wanted} active; {held}"),
            Self::Waiting(outstanding) => write!(f, "waiting to see {outstanding}"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::InvalidSelector { error } => write!(f, "invalid selector: {error}"),
        }
    }
}
