//! Which claims a pod gets, and which changes lead to a sync of it: upstream's cases, and properties of any volumes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use ephemeral_volume_operator::controller::changes::pod_changed;
use ephemeral_volume_operator::objects::PersistentVolumeClaim;
use ephemeral_volume_operator::objects::pod::{LivePod, Pod};
use ephemeral_volume_operator::observe::Caches;
use ephemeral_volume_operator::plan::{Next, Plan, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::testing::protobuf::read_pod;
use shared::testing::{ObjectBuilder, object, pod, store};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

const CLASH: &str = "report a name clash (claim web-data exists and was not created for this pod)";
const COMPLETE: &str = "nothing (each ephemeral volume has its claim)";
const CREATE: &str = "create claims web-data (missing: web-data)";
const READ: &str = "read the pod (missing: web-data)";

fn ephemeral(name: &str) -> Value {
    json!({ "name": name, "ephemeral": { "volumeClaimTemplate": { "spec": {} } } })
}

fn with(volumes: &[Value]) -> ObjectBuilder {
    pod("web").set(&["spec", "volumes"], json!(volumes))
}

fn web() -> ObjectBuilder {
    with(&[ephemeral("data")])
}

fn claim(name: &str) -> ObjectBuilder {
    object("v1", "PersistentVolumeClaim", name)
}

fn own(name: &str, pod: &ObjectBuilder) -> ObjectBuilder {
    claim(name).owned_by(&*pod.build::<Pod>())
}

fn cluster(pods: &[ObjectBuilder], claims: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new();
    for pod in pods {
        store(&caches.pods, &pod.build());
    }
    for claim in claims {
        store(&caches.persistent_volume_claims, &claim.build());
    }
    caches
}

fn key() -> Key {
    Key::new("default", "web")
}

/// The last plan, and the texts of all stages, with this pod live.
fn decide(caches: &Caches, live: Option<&ObjectBuilder>) -> (Next, Vec<String>) {
    let first = plan(&caches.observe(&key()));
    let mut stages = vec![first.stage().text];
    if matches!(first, Next::Execute(_)) {
        return (first, stages);
    }
    let live = live.map(|pod| serde_json::from_value::<LivePod>(pod.json().clone()).unwrap());
    let observed = caches.observe_live(live);
    let last = plan(&observed);
    stages.push(last.stage().text);
    (last, stages)
}

#[track_caller]
fn check(pod: &ObjectBuilder, claims: &[ObjectBuilder], expected: &[&str]) {
    let caches = cluster(std::slice::from_ref(pod), claims);
    assert_eq!(decide(&caches, Some(pod)).1, expected);
}

/// The JSON of each claim that is created.
fn created(caches: &Caches, live: &ObjectBuilder) -> Vec<Value> {
    let (Next::Execute(Plan::Claims { create, .. }), _) = decide(caches, Some(live)) else { return Vec::new() };
    create.iter().map(|new| serde_json::from_slice(&new.body).unwrap()).collect()
}

/// Upstream: `TestSyncHandler`, `pkg/controller/volume/ephemeral/controller_test.go`. "create-conflict" is in `sync.rs`.
#[test]
fn a_pod_gets_the_claims_of_its_ephemeral_volumes() {
    // "create"
    check(&web(), &[], &[READ, CREATE]);
    // "no-such-pod"
    let read = "read the pod (not among the pods that have not started)";
    assert_eq!(decide(&cluster(&[], &[]), None).1, [read, "nothing (the pod is gone)"]);
    // "pod-deleted"
    check(&web().terminating(), &[], &["nothing (being deleted)"]);
    // "no-volumes"
    check(&pod("web"), &[], &["nothing (no ephemeral volumes)"]);
    // "create-with-other-PVC"
    check(&web(), &[claim("web-data").namespace("another")], &[READ, CREATE]);
    // "wrong-PVC-owner"
    check(&web(), &[claim("web-data")], &[CLASH]);
    check(&web(), &[own("web-data", &web())], &[COMPLETE]);
}

#[test]
fn a_claim_of_an_earlier_pod_of_the_name_is_not_used() {
    check(&web(), &[own("web-data", &web().uid_of("earlier"))], &[CLASH]);
}

#[test]
fn a_pod_that_was_replaced_since_the_cache_saw_it_gets_claims_of_its_own() {
    let caches = cluster(&[web().uid_of("earlier")], &[]);
    let bodies = created(&caches, &web());
    assert_eq!(bodies[0]["metadata"]["ownerReferences"][0]["uid"], web().json()["metadata"]["uid"]);
    assert_eq!(decide(&caches, Some(&web().terminating())).1, [READ, "nothing (being deleted)"]);
    assert_eq!(decide(&caches, None).1, [READ, "nothing (the pod is gone)"]);
}

#[test]
fn a_pod_that_has_started_is_read() {
    let read = "read the pod (not among the pods that have not started)";
    assert_eq!(decide(&cluster(&[], &[]), Some(&web())).1, [read, CREATE]);
    assert_eq!(decide(&cluster(&[], &[own("web-data", &web())]), Some(&web())).1, [read, COMPLETE]);
}

#[test]
fn volumes_after_one_whose_name_is_taken_wait() {
    let web = with(&[ephemeral("a"), ephemeral("data"), ephemeral("z")]);
    let expected = "create claims web-a, report a name clash (claim web-data exists and was not created for this pod)";
    check(&web, &[claim("web-data")], &["read the pod (missing: web-a)", expected]);
}

#[test]
fn a_claim_is_its_template_field_by_field() {
    let template = json!({
        "metadata": { "labels": { "a": "b" }, "annotations": { "c": "d" } },
        "spec": { "accessModes": ["ReadWriteOnce"], "aFieldOfALaterVersion": { "x": 1.50 },
            "resources": { "requests": { "storage": "1Gi" } } },
    });
    let web = with(&[
        json!({ "name": "logs", "emptyDir": {} }),
        json!({ "name": "data", "ephemeral": { "volumeClaimTemplate": template } }),
    ]);
    let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": web.json()["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true }]);
    let expected = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": "web-data", "labels": { "a": "b" }, "annotations": { "c": "d" }, "ownerReferences": owner },
        "spec": template["spec"],
    });
    assert_eq!(created(&cluster(std::slice::from_ref(&web), &[]), &web), [expected]);
}

#[test]
fn a_pod_is_read_alike_from_protobuf_and_json() {
    for pod in [pod("web"), with(&[]), with(&[ephemeral("a"), json!({ "name": "b", "emptyDir": {} }), ephemeral("c")])]
    {
        let from_json: Arc<Pod> = pod.build();
        assert_eq!(read_pod::<Pod>(pod.json()).unwrap(), *from_json);
        let live: LivePod = serde_json::from_value(pod.json().clone()).unwrap();
        let live: Vec<&str> = live.ephemeral_volumes.iter().map(|(name, _)| &**name).collect();
        assert_eq!(live, from_json.ephemeral_volumes.iter().map(|name| &**name).collect::<Vec<_>>());
    }
}

fn enqueued(name: &str) -> Effect {
    Effect::Enqueue(Key::new("default", name), Cause::Event)
}

#[test]
fn a_new_pod_with_ephemeral_volumes_is_synced() {
    let [web, plain, going, another]: [Arc<Pod>; 4] =
        [web().build(), pod("web").build(), web().terminating().build(), web().uid_of("another").build()];
    assert_eq!(pod_changed(Change::Added(&web)), [enqueued("web")]);
    assert_eq!(pod_changed(Change::Added(&plain)), []);
    assert_eq!(pod_changed(Change::Added(&going)), []);
    assert_eq!(pod_changed(Change::Updated { old: &web, new: &web }), []);
    assert_eq!(pod_changed(Change::Updated { old: &another, new: &web }), [enqueued("web")]);
    assert_eq!(pod_changed(Change::Deleted(&web)), []);
}

#[test]
fn a_claim_that_goes_wakes_its_pod_and_those_that_wait_for_its_name() {
    let caches = cluster(&[web(), with(&[ephemeral("other")])], &[]);
    store(&caches.pods, &web().build());
    let check = |claim: &ObjectBuilder, expected: &[Effect]| {
        let claim: Arc<PersistentVolumeClaim> = claim.build();
        assert_eq!(caches.claim_changed(Change::Deleted(&claim)), expected);
        assert_eq!(caches.claim_changed(Change::Added(&claim)), []);
        assert_eq!(caches.claim_changed(Change::Updated { old: &claim, new: &claim }), []);
    };
    check(&claim("web-data"), &[enqueued("web")]);
    check(&own("web-data", &web()), &[enqueued("web")]);
    check(&claim("another"), &[]);
    check(&claim("web-data").namespace("another"), &[]);
    let started: ObjectBuilder = pod("started").set(&["spec", "volumes"], json!([ephemeral("data")]));
    check(&own("started-data", &started), &[enqueued("started")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Each volume has no claim, its own, or another's.
    #[test]
    fn a_pod_gets_each_missing_claim_once_and_never_anothers(states in prop::collection::vec(0..3_u8, 0..5)) {
        let names: Vec<String> = (0..states.len()).map(|n| format!("v{n}")).collect();
        let web = with(&names.iter().map(|name| ephemeral(name)).collect::<Vec<_>>());
        let claim_of = |(name, state): (&String, &u8)| match state {
            0 => None,
            1 => Some(own(&format!("web-{name}"), &web)),
            _ => Some(claim(&format!("web-{name}"))),
        };
        let mut claims: Vec<ObjectBuilder> = names.iter().zip(&states).filter_map(claim_of).collect();
        let before_clash = states.iter().take_while(|state| **state != 2).filter(|state| **state == 0).count();
        let caches = cluster(std::slice::from_ref(&web), &claims);
        let bodies = created(&caches, &web);
        prop_assert_eq!(bodies.len(), before_clash);
        for body in &bodies {
            let name = body["metadata"]["name"].as_str().unwrap();
            prop_assert!(caches.persistent_volume_claims.get(&Key::new("default", name)).is_none());
            claims.push(own(name, &web));
        }
        prop_assert_eq!(created(&cluster(std::slice::from_ref(&web), &claims), &web).len(), 0);
    }
}
