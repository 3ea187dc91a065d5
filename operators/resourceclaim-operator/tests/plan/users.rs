//! Pods and PodGroups: their claims are made, recorded, reserved, or waited for.

use resourceclaim_operator::objects::claim::Consumer;
use resourceclaim_operator::plan::users::{Record, RecordedClaim, Steps, UserNext, UserPlan, plan_pod, plan_pod_group};
use shared::testing::LARGE_BYTES;

use crate::fixtures::*;

const COMPLETE: &str = "nothing (each claim is there)";
const CREATE: &str = "create 1, record 1 (acme-resource)";
const RECORD: &str = "record 1 (acme-resource)";
const NOT_ALLOCATED: &str = "nothing (acme-resource: claim test-pod-acme-resource-1 is not allocated)";
const NO_TEMPLATE: &str = "report a failure (acme-resource: resource claim template \"my-template\": \
                           resourceclaimtemplate.resource.k8s.io \"my-template\" not found)";

fn next(gates: FeatureGates, objects: &[ObjectBuilder]) -> UserNext {
    plan_pod(&cluster(gates, objects).observe_pod(&key(POD)).unwrap())
}

fn next_of_group(objects: &[ObjectBuilder]) -> UserNext {
    plan_pod_group(&cluster(ON, objects).observe_pod_group(&key(GROUP)).unwrap())
}

#[track_caller]
fn check(gates: FeatureGates, objects: &[ObjectBuilder], expected: &str) {
    assert_eq!(next(gates, objects).stage().text, expected);
}

#[track_caller]
fn check_group(objects: &[ObjectBuilder], expected: &str) {
    assert_eq!(next_of_group(objects).stage().text, expected);
}

pub(super) fn steps(next: UserNext) -> Steps {
    let steps = if let UserNext::Execute(UserPlan::Act(steps)) = next { Some(steps) } else { None };
    *steps.unwrap()
}

/// The JSON of each claim that is created.
fn created(next: UserNext) -> Vec<Value> {
    steps(next).create.iter().map(|new| serde_json::from_slice(&new.body).unwrap()).collect()
}

/// The entries that are recorded, each with its claim; `+0` is the first that is created.
pub(super) fn record(next: UserNext) -> Vec<String> {
    let name = |Record { entry, claim }: &Record| match claim {
        RecordedClaim::Known(name) => format!("{entry}={name}"),
        RecordedClaim::Created(place) => format!("{entry}=+{place}"),
    };
    steps(next).record.iter().map(name).collect()
}

#[test]
fn an_empty_name_of_a_pod_group_is_none() {
    let unnamed = user().set(&["spec", "schedulingGroup", "podGroupName"], "");
    check(ON, &[unnamed, template()], CREATE);
}

/// Upstream: `testPodWithNodeName`.
fn bound() -> ObjectBuilder {
    recorded(user().node("worker"), CLAIM)
}

/// Upstream: `TestSyncHandler`, `pkg/controller/resourceclaim/controller_test.go`, its cases of pods. Left out: "create
/// with admin and feature gate off", because the gate is locked to true. "create-conflict" is in `sync.rs`.
#[test]
fn a_pod_gets_the_claims_of_its_templates() {
    let off = gates_off();
    // "create"
    check(off, &[user(), template()], CREATE);
    // "create with admin and feature gate on"
    let exactly = json!([{ "name": "req-0", "exactly": { "deviceClassName": "class", "adminAccess": true } }]);
    let admin = template().set(&["spec", "spec", "devices", "requests"], exactly);
    assert!(steps(next(off, &[user(), admin])).create[0].has_admin_access);
    // "create ResourceClaim for Pod with PodGroup claim when feature is disabled"
    check(off, &[in_group(user()), group(), groups(), template()], CREATE);
    // "nop": it waits for its devices only
    check(off, &[recorded(user(), CLAIM), own(), template()], NOT_ALLOCATED);
    // "recreate"
    check(off, &[recorded(user(), CLAIM), template()], CREATE);
    // "missing-template"
    check(off, &[user()], NO_TEMPLATE);
    // "find-existing-claim-by-label", "find-created-claim-in-cache": the cache has what the pod's last sync has made
    check(off, &[user(), own()], RECORD);
    assert_eq!(record(next(off, &[user(), own()])), [format!("{ENTRY}={CLAIM}")]);
    // "no-such-pod"
    assert!(cluster(off, &[template()]).observe_pod(&key(POD)).is_none());
    // "pod-deleted"
    check(off, &[user().terminating(), template()], "nothing (being deleted)");
    // "no-volumes"
    check(off, &[plain_pod(POD)], "nothing (no claims)");
    // "create-with-other-claim"
    check(off, &[user(), template(), own().namespace("not-my-namespace")], CREATE);
    // "wrong-claim-owner"
    check(off, &[user(), made(claim("test-pod-acme-resource"))], NO_TEMPLATE);
}

/// Upstream: `TestSyncHandler`, its cases of PodGroups and of their pods. "create-conflict-podgroup" is in `sync.rs`.
#[test]
fn a_pod_group_gets_the_claims_that_its_pods_share() {
    let waits = "nothing (acme-resource: PodGroup test-podgroup has no claim yet)";
    // "create for PodGroup"
    check_group(&[group(), template()], CREATE);
    // "skip create for Pod with PodGroup before template exists", "… after template exists"
    check(ON, &[in_group(user()), group()], waits);
    check(ON, &[in_group(user()), group(), template()], waits);
    // "update Pod status with PodGroup claim"
    let shared = [in_group(user()), group(), groups(), template()];
    check(ON, &shared, RECORD);
    assert_eq!(record(next(ON, &shared)), [format!("{ENTRY}={GROUPS_CLAIM}")]);
    // "nop for PodGroup"
    check_group(&[recorded(group(), GROUPS_CLAIM), groups(), template()], COMPLETE);
    // "recreate for PodGroup"
    check_group(&[recorded(group(), GROUPS_CLAIM), template()], CREATE);
    // "missing-template-podgroup"
    check_group(&[group()], NO_TEMPLATE);
    // "find-existing-claim-by-label-podgroup", "find-created-claim-in-cache-podgroup"
    check_group(&[group(), groups()], RECORD);
    // "no-such-podgroup"
    assert!(cluster(ON, &[template()]).observe_pod_group(&key(GROUP)).is_none());
    // "podgroup-deleted"
    check_group(&[group().terminating(), template()], "nothing (being deleted)");
    // "create-with-other-claim-podgroup"
    check_group(&[group(), template(), groups().namespace("not-my-namespace")], CREATE);
    // "wrong-claim-owner-podgroup"
    check_group(&[group(), made(claim("test-podgroup-acme-resource"))], NO_TEMPLATE);
    check_group(&[with_entries(group(), &[])], "nothing (no claims)");
}

/// Upstream: `TestSyncHandler`, "add-reserved", "add-reserved-podgroup" and "add-reserved-podgroup-feature-disabled".
#[test]
fn an_allocated_claim_is_reserved_for_a_pod_with_a_node() {
    let consumer = |gates, objects: &[ObjectBuilder]| {
        let Steps { create, record, reserve, .. } = steps(next(gates, objects));
        assert!(create.is_empty() && record.is_empty());
        assert_eq!((reserve.len(), reserve[0].claim.clone()), (1, key(CLAIM)));
        reserve[0].consumer.clone()
    };
    let uid = |user: &ObjectBuilder| Box::<str>::from(user.json()["metadata"]["uid"].as_str().unwrap());
    let pods = Consumer { api_group: "".into(), resource: "pods".into(), name: POD.into(), uid: uid(&user()) };
    let podgroups = Consumer {
        api_group: "scheduling.k8s.io".into(),
        resource: "podgroups".into(),
        name: GROUP.into(),
        uid: uid(&group()),
    };
    assert_eq!(consumer(gates_off(), &[bound(), allocated(own()), template()]), pods);
    let of_group = [in_group(bound()), group(), allocated(own()), template()];
    assert_eq!(consumer(ON, &of_group), podgroups);
    assert_eq!(consumer(gates_off(), &of_group), pods);
}

#[test]
fn a_claim_is_reserved_once_and_only_where_that_can_help() {
    let claim = allocated(own());
    let check = |pod: ObjectBuilder, claim: ObjectBuilder, expected: &str| check(gates_off(), &[pod, claim], expected);
    check(bound(), reserved(claim.clone(), &[&user()]), COMPLETE);
    check(bound(), own(), NOT_ALLOCATED);
    let scheduler = "claim test-pod-acme-resource-1 is allocated, and not reserved yet by the scheduler";
    check(recorded(user(), CLAIM), claim.clone(), &format!("nothing (acme-resource: {scheduler})"));
    let deletion = "nothing (acme-resource: claim test-pod-acme-resource-1 is being deleted)";
    check(bound(), claim.clone().terminating(), deletion);
    check(bound(), reserved(claim.clone(), &[&user()]).terminating(), COMPLETE);
    // Upstream goes on reserving it for such a pod.
    check(bound().phase("Succeeded"), claim.clone(), "nothing (it has ended)");
    check(bound().terminating(), claim, "nothing (being deleted)");
}

#[test]
fn a_reservation_for_the_pod_group_is_one_for_its_pods() {
    let shared = reserved(allocated(groups()), &[&group()]);
    let pod = recorded(in_group(user().node("worker")), GROUPS_CLAIM);
    check(ON, &[pod.clone(), group(), shared.clone()], COMPLETE);
    // Without the gate it is another owner's claim.
    check(gates_off(), &[pod, group(), shared], NO_TEMPLATE);
}

#[test]
fn what_a_user_has_to_make_is_waited_for() {
    let given = with_entries(plain_pod(POD), &[json!({ "name": ENTRY, "resourceClaimName": "shared" })]);
    let missing = "nothing (acme-resource: claim shared does not exist, and is not made from a template)";
    check(gates_off(), std::slice::from_ref(&given), missing);
    let there = reserved(allocated(claim("shared")), &[&given]);
    check(gates_off(), &[given.clone(), there], COMPLETE);
    check(gates_off(), &[given.node("worker"), allocated(claim("shared"))], "reserve 1 (acme-resource)");
    let group_missing = "nothing (acme-resource: PodGroup test-podgroup does not exist)";
    check(ON, &[in_group(user()), template()], group_missing);
}

#[test]
fn an_entry_that_needs_no_claim_is_passed_over() {
    let pod = user().set(&["status", "resourceClaimStatuses"], json!([{ "name": ENTRY }]));
    check(gates_off(), &[pod, template()], COMPLETE);
}

#[test]
fn an_entry_of_an_unknown_source_is_reported_in_upstreams_words() {
    let unknown = [json!({ "name": ENTRY, "aSourceOfALaterVersion": {} })];
    let message = "checking for claim before creating it: pod \"default/test-pod\", spec.resourceClaim \
                   \"acme-resource\": none of the supported fields are set";
    let expected = format!("report a failure (acme-resource: {message})");
    check(gates_off(), &[with_entries(plain_pod(POD), &unknown)], &expected);
    let message = "checking for claim before creating it: PodGroup default/test-podgroup, spec.resourceClaim \
                   acme-resource: none of the supported fields are set";
    check_group(&[with_entries(group(), &unknown)], &format!("report a failure (acme-resource: {message})"));
}

#[test]
fn a_list_of_alternatives_needs_its_gate() {
    let list =
        template().set(&["spec", "spec", "devices", "requests"], json!([{ "firstAvailable": [{ "name": "a" }] }]));
    check(gates_off(), &[user(), list.clone()], CREATE);
    let disabled = FeatureGates { prioritized_list: false, ..gates_off() };
    let expected = "report a failure (acme-resource: template includes a prioritized list of subrequests, but the \
                    feature is disabled)";
    check(disabled, &[user(), list], expected);
}

#[test]
fn entries_after_one_that_fails_wait_and_nothing_is_recorded() {
    let none = json!({ "name": "b", "resourceClaimTemplateName": "none" });
    let pod = with_entries(plain_pod(POD), &[templated("a"), none, templated("c")]);
    let expected = "create 1, report a failure (b: resource claim template \"none\": \
                    resourceclaimtemplate.resource.k8s.io \"none\" not found)";
    check(gates_off(), &[pod, template()], expected);
}

#[test]
fn each_record_names_all_claims_that_were_made() {
    let statuses = json!([{ "name": ENTRY, "resourceClaimName": CLAIM }, { "name": "b", "resourceClaimName": "lost" }]);
    let pod = with_entries(plain_pod(POD), &[templated(ENTRY), templated("b")]);
    let pod = pod.set(&["status", "resourceClaimStatuses"], statuses);
    let objects = [pod, own(), template()];
    check(gates_off(), &objects, "create 1, record 2 (b)");
    assert_eq!(record(next(gates_off(), &objects)), [format!("{ENTRY}={CLAIM}"), "b=+0".to_owned()]);
}

#[test]
fn a_recorded_claim_of_another_owner_is_not_used() {
    let pod = recorded(user(), CLAIM);
    check(gates_off(), &[pod.clone(), made(claim(CLAIM)), template()], CREATE);
    let former = made(claim(CLAIM)).owned_by(&*user().uid_of("former").build::<Pod>());
    check(gates_off(), &[pod, former, template()], CREATE);
}

#[test]
fn a_claim_is_its_template_field_by_field() {
    let spec = json!({
        "metadata": { "labels": { "a": "b" }, "annotations": { "x": "y", POD_CLAIM_NAME: "forged" } },
        "spec": { "devices": { "requests": [{ "name": "r", "aFieldOfALaterVersion": { "x": 1.50 } }] } },
    });
    let template = template().set(&["spec"], spec.clone());
    let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": POD, "uid": user().json()["metadata"]["uid"],
        "controller": true }]);
    let expected = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": { "generateName": "test-pod-acme-resource-", "labels": { "a": "b" },
            "annotations": { "x": "y", POD_CLAIM_NAME: ENTRY }, "ownerReferences": owner },
        "spec": spec["spec"],
    });
    assert_eq!(created(next(gates_off(), &[user(), template.clone()])), [expected]);
    let of_group = &created(next_of_group(&[group(), template]))[0]["metadata"];
    let owner = json!([{ "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": GROUP,
        "uid": group().json()["metadata"]["uid"], "controller": true }]);
    assert_eq!(of_group["ownerReferences"], owner);
    assert_eq!(of_group["generateName"], "test-podgroup-acme-resource-");
}

#[test]
fn a_template_that_is_too_large_for_the_cache_is_read() {
    let large = template().set(&["spec", "spec", "aField"], "x".repeat(LARGE_BYTES));
    let text = next(gates_off(), &[user(), large.clone()]).stage().text;
    let bytes = large.json()["spec"].to_string().len();
    assert_eq!(text, format!("read the template (the {bytes} bytes of template my-template are not cached)"));
    check(gates_off(), &[recorded(user(), CLAIM), own(), large], NOT_ALLOCATED);
}

#[test]
fn a_pod_is_read_with_its_claims_and_its_group() {
    let pod = in_group(recorded(user(), CLAIM))
        .set(&["status", "extendedResourceClaimStatus"], json!({ "resourceClaimName": "x" }));
    let view = pod.build::<Pod>();
    assert_eq!(view.claim_keys().collect::<Vec<_>>(), [key(CLAIM), key("x")]);
    assert_eq!(view.group_key(), Some(key(GROUP)));
    assert!(view.may_need_claims());
    assert_eq!(plain_pod(POD).build::<Pod>().claim_keys().count(), 0);
    assert_eq!(group().build::<PodGroup>().claim_keys().count(), 0);
}
