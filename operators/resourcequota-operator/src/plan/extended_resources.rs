//! What a claim counts under the name of an extended resource that stands for devices: those that it may get, without
//! those that the pod for which it was made counts already.
//!
//! Upstream: `addExtendedResourceQuota` and `getVerifiedPodUsage`, `pkg/quota/v1/evaluator/core/resource_claims.go`.

use jiff::Timestamp;
use shared::api::quantity::Quantity;

use crate::objects::amounts::count;
use crate::objects::resource_claim::MadeFor;
use crate::objects::{DeviceClassFacts, Evaluator, PodFacts, ResourceClaimFacts};
use crate::observe::{Known, Objects, Observed};

/// The device classes that stand for extended resources, and the pods that request these.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtendedResources<'a> {
    classes: &'a [DeviceClassFacts],
    pods: &'a [PodFacts],
}

impl<'a> ExtendedResources<'a> {
    pub fn of(observed: &'a Observed) -> Self {
        let mut extended = Self::default();
        if let Some(Known::Listed(Objects::DeviceClasses(classes))) = observed.kinds.get(&Evaluator::DeviceClasses) {
            extended.classes = classes;
        }
        if let Some(Known::Listed(Objects::Pods(pods))) = observed.kinds.get(&Evaluator::Pods) {
            extended.pods = pods;
        }
        extended
    }

    pub(super) fn has_class_of(self, resource: &str) -> bool {
        self.classes.iter().any(|class| class.has(resource))
    }

    /// The amount that a claim, one of `all`, counts of a resource; none if its pod counts all of it.
    pub(super) fn claimed(
        self,
        claim: &ResourceClaimFacts,
        resource: &str,
        all: &[ResourceClaimFacts],
        now: Timestamp,
    ) -> Option<Quantity> {
        let is_for = |class: &str| self.classes.iter().any(|of| of.name == *class && of.has(resource));
        // Of several classes with this resource upstream takes the one that comes last.
        let devices = claim.devices.iter().filter(|(class, _)| is_for(class)).map(|(_, number)| *number).max()?;
        let made_for = claim.made_for.as_deref();
        let pod = made_for.and_then(|made_for| pod_of(made_for, all, self.pods)).filter(|pod| pod.counts(now));
        let of_pod = pod.and_then(|pod| pod.charge.request(resource));
        // Extended resources are whole numbers.
        let of_pod = of_pod.map_or(0, |amount| amount.milli_value() / 1000);
        let left = devices.saturating_sub(of_pod);
        (left > 0).then(|| count(left))
    }
}

/// The pod for which a claim was made. Until the pod says which claim that is, it is the first one.
fn pod_of<'a>(made_for: &MadeFor, all: &[ResourceClaimFacts], pods: &'a [PodFacts]) -> Option<&'a PodFacts> {
    let is_it = |pod: &&PodFacts| pod.extended.as_ref().is_some_and(|extended| extended.uid == made_for.pod);
    let pod = pods.iter().find(is_it)?;
    let is_its = if let Some(claim) = &pod.extended.as_ref()?.claim {
        *claim == made_for.claim
    } else {
        let others = all.iter().filter_map(|claim| claim.made_for.as_deref());
        let order = |made_for: &MadeFor| (made_for.creation, made_for.claim.clone());
        others.filter(|other| other.pod == made_for.pod).all(|other| order(other) >= order(made_for))
    };
    is_its.then_some(pod)
}
