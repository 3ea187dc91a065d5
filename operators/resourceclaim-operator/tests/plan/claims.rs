//! A claim: kept, taken from users that have ended, or deleted.

use resourceclaim_operator::objects::claim::ResourceClaim;
use resourceclaim_operator::plan::{Next, Plan, Release};
use serde_json::json;
use shared::following::cache::Change;
use shared::testing::pod;

use crate::fixtures::*;

const DEVICES: &str = "deallocate it, remove the finalizer";

/// What becomes of a claim, with these objects in the caches and these live.
#[track_caller]
fn check(
    gates: FeatureGates,
    claim: &ObjectBuilder,
    cached: &[ObjectBuilder],
    live: &[ObjectBuilder],
    stages: &[&str],
) {
    let objects: Vec<ObjectBuilder> = cached.iter().chain([claim]).cloned().collect();
    let name = claim.json()["metadata"]["name"].as_str().unwrap();
    assert_eq!(claim_stages(&cluster(gates, &objects), name, live).1, stages);
}

fn off(claim: &ObjectBuilder, cached: &[ObjectBuilder], live: &[ObjectBuilder], stages: &[&str]) {
    check(gates_off(), claim, cached, live, stages);
}

/// Upstream: `testClaim`, without the annotation of a template.
fn test_claim() -> ObjectBuilder {
    claim(CLAIM).owned_by(&*user().build::<Pod>())
}

fn test_claim_reserved() -> ObjectBuilder {
    reserved(allocated(test_claim()), &[&user()])
}

/// Upstream: `TestSyncHandler`, `pkg/controller/resourceclaim/controller_test.go`, its cases of claims.
#[test]
fn a_claim_is_taken_from_users_that_have_ended_alone() {
    let done = || user().phase("Succeeded");
    let keep = "keep (reserved for pods/test-pod)";
    let ask = "read its users (not in the caches: pods/test-pod)";
    let gone = |steps: &str| format!("remove 1 of its users{steps} (pods/test-pod is gone)");
    // "stay-reserved-seen"
    off(&test_claim_reserved(), &[user()], &[], &[keep]);
    // "stay-reserved-not-seen"
    off(&test_claim_reserved(), &[], &[user()], &[ask, keep]);
    // "clear-reserved-structured"
    off(&held(test_claim_reserved()), &[], &[], &[ask, &gone(&format!(", {DEVICES}"))]);
    // "clear-reserved-podgroup"
    let by_group = held(reserved(allocated(test_claim()), &[&group()]));
    let ask_group = "read its users (not in the caches: podgroups.scheduling.k8s.io/test-podgroup)";
    let group_gone = format!("remove 1 of its users, {DEVICES} (podgroups.scheduling.k8s.io/test-podgroup is gone)");
    check(ON, &by_group, &[], &[], &[ask_group, &group_gone]);
    // "dont-clear-reserved-podgroup-feature-disabled"
    off(&by_group, &[], &[], &["keep (reserved for podgroups.scheduling.k8s.io/test-podgroup)"]);
    // "dont-clear-reserved-structured"
    let other = plain_pod("test-pod-II");
    let twice = reserved(held(allocated(test_claim())), &[&user(), &other]);
    let other_gone = "remove 1 of its users (pods/test-pod-II is gone)";
    off(&twice, &[user()], &[], &["read its users (not in the caches: pods/test-pod-II)", other_gone]);
    // "clear-reserved-structured-deleted"
    off(&held(test_claim_reserved()).terminating(), &[], &[], &[ask, &gone(&format!(", {DEVICES}"))]);
    // "structured-deleted"
    let unused = format!("{DEVICES} (being deleted and unused)");
    off(&held(allocated(test_claim())).terminating(), &[], &[], &[&unused]);
    // "clear-reserved-when-done"
    let nobodys = reserved(allocated(claim(CLAIM)), &[&user()]);
    off(&nobodys, &[done()], &[], &["remove 1 of its users (pods/test-pod has ended)"]);
    // "remove-reserved"
    let twice = reserved(allocated(test_claim()), &[&user(), &other]);
    off(&twice, &[user()], &[], &["read its users (not in the caches: pods/test-pod-II)", other_gone]);
    // "delete-claim-when-done": first it loses its user, and the next sync deletes it
    off(&test_claim_reserved(), &[done()], &[], &["remove 1 of its users (pods/test-pod has ended)"]);
    let after = "delete (made for pod test-pod, which has ended)";
    off(&reserved(allocated(test_claim()), &[]), &[done()], &[], &[after]);
    // "clean up pod reservation with non-pod reservation present"
    let mut users = test_claim_reserved().json()["status"]["reservedFor"].clone();
    users
        .as_array_mut()
        .unwrap()
        .push(json!({ "apiGroup": "foo.com", "resource": "foo", "name": "foo", "uid": "123" }));
    let mixed = test_claim_reserved().set(&["status", "reservedFor"], users.clone());
    off(&mixed, &[done()], &[], &["remove 1 of its users (pods/test-pod has ended)"]);
    let foreign = test_claim().set(&["status", "reservedFor"], json!([users[1]]));
    off(&foreign, &[done()], &[], &["keep (reserved for foo.foo.com/foo)"]);
}

#[test]
fn a_pod_that_may_run_keeps_its_claim_whatever_an_old_cache_shows() {
    let claim = held(test_claim_reserved());
    let former = user().uid_of("former");
    let ask = "read its users (not in the caches: pods/test-pod)";
    let keep = "keep (reserved for pods/test-pod)";
    // The cache has the pod before this one, and the claim is newer.
    off(&claim, &[former.clone().phase("Succeeded")], &[user()], &[ask, keep]);
    let replaced = format!("remove 1 of its users, {DEVICES} (pods/test-pod was replaced)");
    off(&claim, std::slice::from_ref(&former), std::slice::from_ref(&former), &[ask, &replaced]);
    // It is being deleted, and its containers may run.
    off(&claim, &[user().node("node").terminating()], &[], &[keep]);
    let ended = format!("remove 1 of its users, {DEVICES} (pods/test-pod has ended)");
    off(&claim, &[user().terminating()], &[], &[&ended]);
    off(&claim, &[], &[user().phase("Failed")], &[ask, &ended]);
}

#[test]
fn a_pod_that_was_seen_to_be_deleted_is_not_read() {
    let caches = cluster(gates_off(), &[held(test_claim_reserved())]);
    caches.note_deleted_pod(Change::Added(&user().build()));
    assert_eq!(claim_stages(&caches, CLAIM, &[]).1.len(), 2);
    caches.note_deleted_pod(Change::Deleted(&user().build()));
    let gone = format!("remove 1 of its users, {DEVICES} (pods/test-pod is gone)");
    assert_eq!(claim_stages(&caches, CLAIM, &[]).1, [gone]);
}

#[test]
fn a_claim_that_nobody_has_reserved_goes_with_its_pod_and_not_before() {
    let own = test_claim();
    let waits = "keep (made for pod test-pod, which has not reserved it; not allocated)";
    off(&own, &[user()], &[], &[waits]);
    off(&own, &[user().phase("Failed")], &[], &["delete (made for pod test-pod, which has ended)"]);
    off(&own, &[user().terminating()], &[], &["delete (made for pod test-pod, which has ended)"]);
    let collected = "keep (made for pod test-pod, which is gone; the garbage collector deletes the claim)";
    off(&own, &[], &[], &[collected]);
    let former = user().uid_of("former");
    let ask = "read its pod (the cache has another pod test-pod)";
    off(
        &own,
        std::slice::from_ref(&former),
        std::slice::from_ref(&former),
        &[ask, "delete (made for pod test-pod, which was replaced)"],
    );
    off(&own, std::slice::from_ref(&former), &[user()], &[ask, waits]);
    off(&own, std::slice::from_ref(&former), &[], &[ask, collected]);
    off(&claim("shared"), &[], &[], &["keep (not allocated, not reserved)"]);
    off(&held(allocated(claim("shared"))), &[], &[], &["keep (allocated, not reserved)"]);
    off(&allocated(claim("shared")).terminating(), &[], &[], &["keep (being deleted without the finalizer)"]);
    off(&held(claim("shared")).terminating(), &[], &[], &["remove the finalizer (being deleted and unused)"]);
}

#[test]
fn a_release_is_about_this_state_of_the_claim_and_names_users_as_they_are_written() {
    let odd = json!([{ "resource": "pods", "name": "web", "uid": "Not-A-Uuid" }]);
    let claim = allocated(claim(CLAIM)).set(&["status", "reservedFor"], odd);
    let (next, _) = claim_stages(&cluster(gates_off(), std::slice::from_ref(&claim)), CLAIM, &[]);
    let Next::Execute(Plan::Release(Release { users, preconditions, .. })) = next else { panic!("{next:?}") };
    assert_eq!(users, ["Not-A-Uuid".into()]);
    let metadata = &claim.build::<ResourceClaim>().metadata;
    assert_eq!((preconditions.uid, preconditions.resource_version), (metadata.uid, Some(metadata.resource_version)));
}

/// Upstream: `TestGetAdminAccessMetricLabel`. Left out: "nil claim", which no cache has.
#[test]
fn admin_access_is_asked_for_by_one_exact_request() {
    let exactly = |access: Value| json!({ "name": "r", "exactly": { "adminAccess": access } });
    for (name, requests, expected) in [
        ("no requests", json!(null), false),
        ("admin access false", json!([exactly(json!(false))]), false),
        ("admin access true", json!([exactly(json!(true))]), true),
        ("prioritized list", json!([{ "name": "r", "firstAvailable": [{}] }]), false),
        ("multiple requests, one with admin access true", json!([exactly(json!(false)), exactly(json!(true))]), true),
        (
            "multiple requests, all admin access false or nil",
            json!([exactly(json!(null)), exactly(json!(false))]),
            false,
        ),
    ] {
        let claim = claim(CLAIM).set(&["spec", "devices", "requests"], requests);
        assert_eq!(claim.build::<ResourceClaim>().has_admin_access, expected, "{name}");
    }
}

#[test]
fn a_pod_with_a_node_is_done_once_its_phase_is() {
    for (phase, is_done) in
        [("Pending", false), ("Running", false), ("Unknown", false), ("Succeeded", true), ("Failed", true)]
    {
        assert_eq!(pod("web").phase(phase).build::<Pod>().is_done(), is_done, "{phase}");
    }
}

#[test]
fn an_annotation_of_any_size_takes_little_room_and_stays_no_entrys_name() {
    let long = "a".repeat(100_000);
    let kept = claim(CLAIM).annotation(POD_CLAIM_NAME, &long).build::<ResourceClaim>();
    assert_eq!(kept.metadata.annotations.pod_claim.len(), 126);
}
