//! Keeping a number of pods alike: what ReplicaSets and ReplicationControllers share, and in parts Jobs and DaemonSets.
//!
//! Reading order: [`pod`] (the view) → [`ReplicaOwner`] and [`Observed`] → [`plan`] (what to do) → [`slow_start`] (in
//! which batches) → [`status`] (what came of it).
//! Left out: the kinds themselves, which are their operators', and every call to the apiserver.

pub mod plan;
pub mod pod;
pub mod slow_start;
pub mod status;

use std::sync::Arc;

use crate::expectations::Outstanding;
use crate::labels::Labels;
use crate::object::Kind;
use crate::owner::{Claim, Owner, claim};
use crate::pod::PodView;
use crate::selector::{InvalidSelector, Selector};
use pod::Pod;
use status::ReplicaStatus;

/// A kind that keeps a number of pods.
pub trait ReplicaOwner: Kind {
    /// Whether its status has terminatingReplicas.
    const COUNTS_TERMINATING: bool;

    /// What it asks for.
    fn spec(&self) -> &ReplicaSpec;

    /// What was last written of it.
    fn status(&self) -> &ReplicaStatus;

    /// Who claims pods in its name.
    fn owner(&self) -> Owner {
        let meta = self.meta();
        Owner { resource: Self::RESOURCE, key: meta.key.clone(), uid: meta.uid, being_deleted: meta.is_being_deleted() }
    }
}

/// What an owner asks for. How its pods are made is its template's, which only creation reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSpec {
    /// How many pods.
    pub replicas: i32,
    /// How long a pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    /// Which pods are its own.
    pub selector: Result<Selector, InvalidSelector>,
    /// The labels its pods are made with.
    pub template_labels: Labels,
}

impl ReplicaSpec {
    /// `replicas`; none if it is negative, which the apiserver does not let through.
    pub fn wanted(&self) -> usize {
        usize::try_from(self.replicas).unwrap_or(0)
    }
}

/// All that one sync decides on.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed<T> {
    /// Who keeps the pods.
    pub owner: Arc<T>,
    /// The pods whose controller it is, and those of its namespace that have none.
    pub pods: Vec<Arc<Pod>>,
    /// The pods of all owners under the same controller, to tell which nodes hold several; read only if one must go.
    pub related: Vec<Arc<Pod>>,
    /// What it asked for and has not seen: until then its pods are not counted.
    pub outstanding: Option<Outstanding>,
}

impl<T: ReplicaOwner> Observed<T> {
    /// Sorts the active pods by what becomes of them. Pods that have ended or are being deleted are neither adopted nor
    /// released.
    fn claim(&self, selector: &Selector) -> Claim<Pod> {
        let active = self.pods.iter().filter(|pod| pod.is_active()).cloned();
        claim(&self.owner.owner(), active, |pod| selector.matches(&pod.metadata.labels))
    }

    /// How many pods are on their way out.
    ///
    /// Source: `FilterClaimedPods` over `FilterTerminatingPods`, `pkg/controller/controller_utils.go`.
    fn terminating(&self, selector: &Selector) -> usize {
        let uid = self.owner.meta().uid;
        let is_ours = |pod: &Pod| pod.metadata.is_controlled_by(uid) && selector.matches(&pod.metadata.labels);
        self.pods.iter().filter(|pod| pod.is_terminating() && is_ours(pod)).count()
    }
}
