//! Builders of upstream's objects, under the names that its tests give them.

use std::sync::Arc;

use device_taint_eviction_operator::memory::Pending;
use device_taint_eviction_operator::objects::{DeviceTaintRule, Pod, ResourceClaim, ResourceSlice};
use device_taint_eviction_operator::observe::{Observed, ObservedRule, UsedClaim};
use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::api::time::Time;
use shared::testing::{ObjectBuilder, ago, object, uid};

pub(crate) const KEY: &str = "example.com/taint";
pub(crate) const TAINT_TIME: &str = "2026-01-01T12:00:00Z";

/// So many seconds after now.
pub(crate) fn after(seconds: i64) -> Timestamp {
    ago(-seconds)
}

pub(crate) fn taint(key: &str, value: &str, effect: &str) -> Value {
    json!({ "key": key, "value": value, "effect": effect, "timeAdded": TAINT_TIME })
}

/// Upstream: `taint`.
pub(crate) fn something() -> Value {
    taint(KEY, "something", "NoExecute")
}

/// The pool `worker` of `some-driver`; its device `instance` has these taints. Upstream: `slice`.
pub(crate) fn slice(taints: &[Value]) -> ObjectBuilder {
    named_slice("slice", 1, taints)
}

pub(crate) fn named_slice(name: &str, generation: i64, taints: &[Value]) -> ObjectBuilder {
    let devices = json!([
        { "name": "instance", "taints": taints },
        { "name": "instance-no-schedule", "taints": [taint(KEY, "", "NoSchedule")] },
        { "name": "instance-no-execute", "taints": [taint(KEY, "", "None")] },
    ]);
    object("resource.k8s.io/v1", "ResourceSlice", name)
        .namespace("")
        .set(&["spec", "driver"], "some-driver")
        .set(&["spec", "pool"], json!({ "name": "worker", "generation": generation, "resourceSliceCount": 1 }))
        .set(&["spec", "devices"], devices)
}

/// Of `NoExecute` taints, for so many seconds.
pub(crate) fn toleration(key: &str, value: Option<&str>, seconds: Option<i64>) -> Value {
    let operator = if value.is_some() { "Equal" } else { "Exists" };
    json!({ "key": key, "operator": operator, "value": value.unwrap_or_default(), "effect": "NoExecute",
            "tolerationSeconds": seconds })
}

/// One result of an allocation.
pub(crate) fn allocated(device: &str, tolerations: &[Value]) -> Value {
    json!({ "request": "req-1", "driver": "some-driver", "pool": "worker", "device": device, "tolerations": tolerations })
}

/// A claim with these devices that is reserved for pods. Upstream: `inUseClaim`.
pub(crate) fn claim_of(name: &str, devices: &[Value], pods: &[&str]) -> ObjectBuilder {
    let consumers = pods.iter().map(|pod| json!({ "resource": "pods", "name": pod, "uid": uid(pod) }));
    object("resource.k8s.io/v1", "ResourceClaim", name)
        .set(&["status", "allocation", "devices", "results"], devices.to_vec())
        .set(&["status", "reservedFor"], consumers.collect::<Vec<_>>())
}

/// `my-claim` with the device `instance`, made for `my-pod` and in use by it.
pub(crate) fn claim(tolerations: &[Value]) -> ObjectBuilder {
    claim_of("my-claim", &[allocated("instance", tolerations)], &["my-pod"])
        .set(&["metadata", "ownerReferences"], owner("my-pod"))
}

pub(crate) fn owner(pod: &str) -> Value {
    json!([{ "apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid(pod), "controller": true }])
}

/// The same for a PodGroup. Upstream: `inUseClaimByPodGroup`.
pub(crate) fn claim_of_group() -> ObjectBuilder {
    let owner = json!([{ "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "my-podgroup",
                         "uid": uid("my-podgroup"), "controller": true }]);
    let consumer = json!({ "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "my-podgroup",
                           "uid": uid("my-podgroup") });
    claim(&[]).set(&["metadata", "ownerReferences"], owner).set(&["status", "reservedFor"], json!([consumer]))
}

/// A pod that uses these claims. Upstream: `podWithClaimName`.
pub(crate) fn pod_of(name: &str, claims: &[&str]) -> ObjectBuilder {
    let references = claims.iter().map(|claim| json!({ "name": claim, "resourceClaimName": claim }));
    shared::testing::pod(name).node("worker").set(&["spec", "resourceClaims"], references.collect::<Vec<_>>())
}

/// `my-pod` with `my-claim`.
pub(crate) fn pod() -> ObjectBuilder {
    pod_of("my-pod", &["my-claim"])
}

/// The same with a claim from a template, as far as the status has it. Upstream: `podWithClaimTemplate`.
pub(crate) fn pod_with_template(statuses: &Value) -> ObjectBuilder {
    let reference = json!([{ "name": "my-resource", "resourceClaimTemplateName": "my-template" }]);
    pod().set(&["spec", "resourceClaims"], reference).set(&["status", "resourceClaimStatuses"], statuses.clone())
}

pub(crate) fn in_status() -> Value {
    json!([{ "name": "my-resource", "resourceClaimName": "my-claim" }])
}

/// A rule for these devices. Upstream: `ruleEvict` and `ruleNone`.
pub(crate) fn rule(name: &str, selector: Value, effect: &str) -> ObjectBuilder {
    object("resource.k8s.io/v1beta2", "DeviceTaintRule", name)
        .namespace("")
        .set(&["spec", "deviceSelector"], selector)
        .set(&["spec", "taint"], taint(KEY, "something", effect))
}

/// For all devices of the driver.
pub(crate) fn of_driver(effect: &str) -> ObjectBuilder {
    rule("evict", json!({ "driver": "some-driver" }), effect)
}

/// All that a pod's plan may depend on.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) pod: ObjectBuilder,
    pub(crate) claims: Vec<ObjectBuilder>,
    /// Of the newest generation.
    pub(crate) slices: Vec<ObjectBuilder>,
    pub(crate) rules: Vec<ObjectBuilder>,
    pub(crate) by_group: bool,
}

impl Scene {
    /// `my-pod` with `my-claim` and the taints of its device.
    pub(crate) fn new(taints: &[Value], tolerations: &[Value]) -> Self {
        Self {
            pod: pod(),
            claims: vec![claim(tolerations)],
            slices: vec![slice(taints)],
            rules: Vec::new(),
            by_group: false,
        }
    }

    fn claims_of(&self, pod: &Pod, slices: &[Arc<ResourceSlice>]) -> Vec<UsedClaim> {
        let built: Vec<Arc<ResourceClaim>> = self.claims.iter().map(ObjectBuilder::build).collect();
        let used = pod.claims.iter().filter_map(|reference| {
            let claim = built.iter().find(|claim| claim.metadata.name() == reference.name.as_str())?;
            let (claim, is_from_template) = (Arc::clone(claim), reference.is_from_template);
            Some(UsedClaim { claim, is_from_template, slices: slices.to_vec() })
        });
        used.collect()
    }

    /// Without a pending deletion.
    pub(crate) fn observed(&self) -> Observed {
        let pod: Arc<Pod> = self.pod.build();
        let slices: Vec<Arc<ResourceSlice>> = self.slices.iter().map(ObjectBuilder::build).collect();
        let rules: Vec<Arc<DeviceTaintRule>> = self.rules.iter().map(ObjectBuilder::build).collect();
        let claims = self.claims_of(&pod, &slices);
        let key = pod.metadata.key.clone();
        Observed { key, pod: Some(pod), claims, rules, pending: None, by_group: self.by_group }
    }
}

/// A pending deletion of the pod of this name, due after so many seconds.
pub(crate) fn pending(name: &str, seconds: i64, is_announced: bool) -> Pending {
    Pending { uid: uid(name), due: Time::of(after(seconds)), rules: Vec::new(), is_announced }
}

/// A rule and the pods of these scenes, with as many devices as given, after the rule has ended so many pods.
pub(crate) fn observed_rule(
    rule: &ObjectBuilder,
    scenes: &[Scene],
    (published, allocated): (usize, usize),
    evicted: u64,
) -> ObservedRule {
    ObservedRule {
        rule: rule.build(),
        pods: scenes.iter().map(Scene::observed).collect(),
        published,
        allocated,
        evicted,
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("", name)
}
