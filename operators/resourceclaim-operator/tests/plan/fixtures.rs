//! The objects of upstream's cases, caches with them, and the stages of a claim.

pub(crate) use std::sync::Arc;

pub(crate) use resourceclaim_operator::flags::gates::FeatureGates;
pub(crate) use resourceclaim_operator::objects::POD_CLAIM_NAME;
use resourceclaim_operator::objects::PROTECTION;
use resourceclaim_operator::objects::claim::ConsumerKind;
pub(crate) use resourceclaim_operator::objects::pod::Pod;
pub(crate) use resourceclaim_operator::objects::pod_group::PodGroup;
pub(crate) use resourceclaim_operator::observe::Caches;
use resourceclaim_operator::observe::{Lookup, Observed, Standing};
use resourceclaim_operator::plan::{Next, plan};
pub(crate) use serde_json::{Value, json};
pub(crate) use shared::api::object::Key;
pub(crate) use shared::testing::{ObjectBuilder, object, store};

/// Upstream's names of its objects.
pub(crate) const POD: &str = "test-pod";
pub(crate) const GROUP: &str = "test-podgroup";
pub(crate) const ENTRY: &str = "acme-resource";
pub(crate) const TEMPLATE: &str = "my-template";
/// The claim that was made for the pod, and the one for the PodGroup.
pub(crate) const CLAIM: &str = "test-pod-acme-resource-1";
pub(crate) const GROUPS_CLAIM: &str = "test-podgroup-acme-resource-1";

pub(crate) const ON: FeatureGates = FeatureGates { prioritized_list: true, workload_resource_claims: true };

pub(crate) fn gates_off() -> FeatureGates {
    FeatureGates::default()
}

/// A pod without a node.
pub(crate) fn plain_pod(name: &str) -> ObjectBuilder {
    object("v1", "Pod", name).set(&["spec"], json!({}))
}

pub(crate) fn templated(entry: &str) -> Value {
    json!({ "name": entry, "resourceClaimTemplateName": TEMPLATE })
}

pub(crate) fn with_entries(user: ObjectBuilder, entries: &[Value]) -> ObjectBuilder {
    user.set(&["spec", "resourceClaims"], json!(entries))
}

/// Upstream: `testPodWithResource`.
pub(crate) fn user() -> ObjectBuilder {
    with_entries(plain_pod(POD), &[templated(ENTRY)])
}

pub(crate) fn recorded(user: ObjectBuilder, claim: &str) -> ObjectBuilder {
    user.set(&["status", "resourceClaimStatuses"], json!([{ "name": ENTRY, "resourceClaimName": claim }]))
}

pub(crate) fn in_group(pod: ObjectBuilder) -> ObjectBuilder {
    pod.set(&["spec", "schedulingGroup", "podGroupName"], GROUP)
}

/// Upstream: `testPodGroupWithResource`.
pub(crate) fn group() -> ObjectBuilder {
    with_entries(object("scheduling.k8s.io/v1alpha2", "PodGroup", GROUP), &[templated(ENTRY)])
}

pub(crate) fn template() -> ObjectBuilder {
    object("resource.k8s.io/v1", "ResourceClaimTemplate", TEMPLATE).set(&["spec"], json!({ "spec": {} }))
}

pub(crate) fn claim(name: &str) -> ObjectBuilder {
    object("resource.k8s.io/v1", "ResourceClaim", name)
}

pub(crate) fn made(claim: ObjectBuilder) -> ObjectBuilder {
    claim.annotation(POD_CLAIM_NAME, ENTRY)
}

/// Upstream: `templatedTestClaim`.
pub(crate) fn own() -> ObjectBuilder {
    made(claim(CLAIM)).owned_by(&*user().build::<Pod>())
}

/// Upstream: `templatedTestPodGroupClaim`.
pub(crate) fn groups() -> ObjectBuilder {
    made(claim(GROUPS_CLAIM)).owned_by(&*group().build::<PodGroup>())
}

pub(crate) fn allocated(claim: ObjectBuilder) -> ObjectBuilder {
    claim.set(&["status", "allocation"], json!({}))
}

/// Upstream: `structuredParameters`.
pub(crate) fn held(claim: ObjectBuilder) -> ObjectBuilder {
    claim.set(&["metadata", "finalizers"], json!([PROTECTION.finalizer]))
}

pub(crate) fn reserved(claim: ObjectBuilder, users: &[&ObjectBuilder]) -> ObjectBuilder {
    let consumer = |user: &&ObjectBuilder| {
        let metadata = &user.json()["metadata"];
        let kind = if user.json()["kind"] == "Pod" {
            json!({ "resource": "pods" })
        } else {
            json!({ "apiGroup": "scheduling.k8s.io", "resource": "podgroups" })
        };
        let mut consumer = kind;
        consumer["name"] = metadata["name"].clone();
        consumer["uid"] = metadata["uid"].clone();
        consumer
    };
    let users: Vec<Value> = users.iter().map(consumer).collect();
    claim.set(&["status", "reservedFor"], json!(users))
}

/// Caches with these objects.
pub(crate) fn cluster(gates: FeatureGates, objects: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new(gates);
    for object in objects {
        match object.json()["kind"].as_str().unwrap() {
            "Pod" => store(&caches.pods, &object.build()),
            "PodGroup" => store(&caches.pod_groups, &object.build()),
            "ResourceClaim" => store(&caches.resource_claims, &object.build()),
            _ => store(&caches.resource_claim_templates, &object.build()),
        }
    }
    caches
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("default", name)
}

/// The observation after a live read of what was open, by which these objects exist.
pub(crate) fn observed_live(observed: Observed, live: &[ObjectBuilder]) -> Observed {
    let find = |kind: &str, name: &str| {
        live.iter().find(|object| object.json()["kind"] == kind && object.json()["metadata"]["name"] == name)
    };
    let standing = |kind, name: &str| match kind {
        ConsumerKind::Pod => find("Pod", name).map(|pod| Standing::from(&*pod.build::<Pod>())),
        ConsumerKind::PodGroup => find("PodGroup", name).map(|group| Standing::from(&*group.build::<PodGroup>())),
    };
    let Observed { claim, mut consumers, mut owner } = observed;
    for (consumer, lookup) in claim.reserved_for.iter().zip(&mut consumers) {
        if lookup.is_open(consumer.uid()) {
            *lookup = Lookup::Live(standing(consumer.kind().unwrap(), &consumer.name));
        }
    }
    if let Some(owner) = owner.as_mut().filter(|owner| owner.is_open()) {
        owner.lookup = Lookup::Live(standing(ConsumerKind::Pod, owner.pod.name()));
    }
    Observed { claim: Arc::clone(&claim), consumers, owner }
}

/// The stages for the claim of this name, with these objects live.
pub(crate) fn claim_stages(caches: &Caches, name: &str, live: &[ObjectBuilder]) -> (Next, Vec<String>) {
    let mut observed = caches.observe(&key(name)).unwrap();
    let mut stages = Vec::new();
    loop {
        let next = plan(&observed);
        stages.push(next.stage().text);
        if matches!(next, Next::Execute(_)) {
            return (next, stages);
        }
        observed = observed_live(observed, live);
    }
}
