//! Which keys are synced after a change: upstream's cases, as the syncs that have something to do.

use resourceclaim_operator::controller::changes::{claim_changed, group_changed, pod_changed};
use resourceclaim_operator::objects::claim::ResourceClaim;
use resourceclaim_operator::objects::template::ResourceClaimTemplate;
use resourceclaim_operator::plan::reasons::UserReason;
use resourceclaim_operator::plan::users::{UserNext, UserPlan, plan_pod, plan_pod_group};
use shared::following::cache::Change;
use shared::working::effect::Effect;

use crate::fixtures::*;

fn keys(prefix: &str, effects: Vec<Effect>) -> Vec<String> {
    let key = |effect| match effect {
        Effect::Enqueue(key, _) => Some(format!("{prefix}{key}")),
        Effect::EnqueueAfter(..) | Effect::CreationObserved(_) | Effect::DeletionObserved(..) | Effect::Forget(..) => {
            None
        }
    };
    effects.into_iter().filter_map(key).collect()
}

/// The keys that a change of a pod leads to.
fn of_pod(caches: &Caches, change: Change<'_, Pod>) -> Vec<String> {
    let claims = keys("claim:", caches.claims_of_ended_pod(change));
    claims.into_iter().chain(keys("pod:", pod_changed(change))).collect()
}

fn of_claim(caches: &Caches, change: Change<'_, ResourceClaim>) -> Vec<String> {
    let claims = keys("claim:", claim_changed(change));
    let pods = keys("pod:", caches.pods_of_changed_claim(change));
    let groups = keys("podgroup:", caches.groups_of_changed_claim(change));
    claims.into_iter().chain(pods).chain(groups).collect()
}

fn of_template(caches: &Caches, change: Change<'_, ResourceClaimTemplate>) -> Vec<String> {
    let groups = keys("podgroup:", caches.groups_of_new_template(change));
    keys("pod:", caches.pods_of_new_template(change)).into_iter().chain(groups).collect()
}

fn of_group(caches: &Caches, change: Change<'_, PodGroup>) -> Vec<String> {
    let claims = keys("claim:", caches.claims_of_deleted_group(change));
    let pods = keys("pod:", caches.pods_of_changed_group(change));
    claims.into_iter().chain(pods).chain(keys("podgroup:", group_changed(change))).collect()
}

/// Those whose sync finds something that is missing; upstream asks that before it adds a key.
fn with_work(caches: &Caches, keys: Vec<String>) -> Vec<String> {
    let is_complete = |next: UserNext| matches!(next, UserNext::Execute(UserPlan::Nothing(UserReason::Complete)));
    let has_work = |key: &String| match key.split_once(':').unwrap() {
        ("pod", key) => !is_complete(plan_pod(&caches.observe_pod(&parsed(key)).unwrap())),
        ("podgroup", key) => !is_complete(plan_pod_group(&caches.observe_pod_group(&parsed(key)).unwrap())),
        _ => true,
    };
    keys.into_iter().filter(has_work).collect()
}

fn parsed(key: &str) -> Key {
    let (namespace, name) = key.split_once('/').unwrap();
    Key::new(namespace, name)
}

/// Upstream: `TestResourceClaimTemplateEventHandler`, `pkg/controller/resourceclaim/controller_test.go`.
#[test]
fn a_new_template_leads_to_the_pods_of_its_namespace_that_name_it() {
    let elsewhere = with_entries(plain_pod("fake-1").namespace("tmp"), &[templated(ENTRY)]);
    let caches = cluster(gates_off(), &[user(), elsewhere.clone(), plain_pod("other")]);
    assert_eq!(of_pod(&caches, Change::Added(&user().build())), ["pod:default/test-pod"]);
    assert_eq!(of_pod(&caches, Change::Added(&elsewhere.build())), ["pod:tmp/fake-1"]);
    assert_eq!(of_template(&caches, Change::Added(&template().build())), ["pod:default/test-pod"]);
    assert_eq!(of_template(&caches, Change::Added(&template().namespace("tmp").build())), ["pod:tmp/fake-1"]);
    assert_eq!(of_template(&caches, Change::Deleted(&template().build())), [""; 0]);
}

/// Upstream: `TestResourceClaimEventHandler`. Its numbers of claims are in `metrics.rs`.
#[test]
fn each_change_of_a_claim_leads_to_it_but_its_deletion() {
    let caches = cluster(gates_off(), &[]);
    let (plain, labelled) = (claim(CLAIM).build(), claim(CLAIM).label("foo", "bar").build());
    let allocated: Arc<ResourceClaim> = allocated(claim(CLAIM)).build();
    let expected = ["claim:default/test-pod-acme-resource-1"];
    // "create claim", "create allocated claim"
    assert_eq!(of_claim(&caches, Change::Added(&plain)), expected);
    assert_eq!(of_claim(&caches, Change::Added(&allocated)), expected);
    // "modify claim", "allocate claim", "deallocate claim"
    for (old, new) in [(&plain, &labelled), (&labelled, &allocated), (&allocated, &plain)] {
        assert_eq!(of_claim(&caches, Change::Updated { old, new }), expected);
    }
    // "delete deallocated claim", "delete allocated claim"
    assert_eq!(of_claim(&caches, Change::Deleted(&plain)), [""; 0]);
    assert_eq!(of_claim(&caches, Change::Deleted(&allocated)), [""; 0]);
    let forget = Effect::Forget(plain.metadata.key.clone(), plain.metadata.uid);
    assert_eq!(claim_changed(Change::Deleted(&plain)), [forget]);
}

/// Upstream: `TestEventHandlers`. Without the gate no PodGroup is followed, which `sync.rs` shows for
/// "new-podgroup-feature-disabled" and "podgroup-claim-status-update-feature-disabled". Left out: "nothing".
#[test]
fn a_pod_group_leads_to_itself_and_to_its_pods() {
    // Upstream's claim of the PodGroup has the name of the pod's.
    let in_status = recorded(group(), CLAIM);
    let theirs = claim(CLAIM).owned_by(&*group().build::<PodGroup>());
    let own = ["podgroup:default/test-podgroup"];
    // "new-podgroup"
    let caches = cluster(ON, std::slice::from_ref(&in_status));
    assert_eq!(with_work(&caches, of_group(&caches, Change::Added(&in_status.build()))), own);
    // "new-podgroup-templated-claim-already-exists"
    let caches = cluster(ON, &[in_status.clone(), theirs.clone()]);
    assert_eq!(with_work(&caches, of_group(&caches, Change::Added(&in_status.build()))), [""; 0]);
    // "new-templated-claim-for-podgroup"
    let woken = with_work(&caches, of_claim(&caches, Change::Added(&theirs.build())));
    assert_eq!(woken, ["claim:default/test-pod-acme-resource-1"]);
    // "new-template-for-podgroup"
    let caches = cluster(ON, &[group()]);
    assert_eq!(with_work(&caches, of_template(&caches, Change::Added(&template().build()))), own);
    // "podgroup-claim-status-update"
    let member = |name: &str, group: &str| {
        let pod = with_entries(plain_pod(name), &[templated(ENTRY)]);
        pod.set(&["spec", "schedulingGroup", "podGroupName"], group)
    };
    let pods = [
        member("test-pod-1", GROUP),
        member("test-pod-2", GROUP),
        member("test-pod-3", "test-podgroup-2"),
        in_group(plain_pod("test-pod-4")),
    ];
    let caches = cluster(ON, &[&pods[..], std::slice::from_ref(&in_status)].concat());
    let change = (group().build(), in_status.build());
    let woken = of_group(&caches, Change::Updated { old: &change.0, new: &change.1 });
    let members = ["pod:default/test-pod-1", "pod:default/test-pod-2"];
    assert_eq!(with_work(&caches, woken), [&members[..], &own[..]].concat());
    let same = Change::Updated { old: &change.1, new: &change.1 };
    assert_eq!(of_group(&caches, same), [""; 0]);
    let gone = of_group(&caches, Change::Deleted(&change.1));
    assert_eq!(gone, ["claim:default/test-pod-acme-resource-1"]);
}

/// Upstream: `TestEnqueuePodExtendedResourceClaims`. The gate `DRAExtendedResource` changes nothing there, either.
#[test]
fn the_claim_of_extended_resources_is_synced_when_its_pod_ends() {
    let with_extended = |pod: ObjectBuilder| {
        pod.set(&["status", "extendedResourceClaimStatus", "resourceClaimName"], "test-extended-claim")
    };
    let regular = || with_entries(plain_pod(POD), &[json!({ "name": "regular-claim" })]);
    let caches = cluster(gates_off(), &[]);
    let added = |pod: ObjectBuilder| keys("claim:", caches.claims_of_ended_pod(Change::Added(&pod.build())));
    let extended = ["claim:default/test-extended-claim"];
    // "pod with no resource claims", "pod with regular resource claims only"
    assert_eq!(of_pod(&caches, Change::Added(&plain_pod(POD).phase("Succeeded").build())), [""; 0]);
    assert_eq!(added(regular().phase("Running")), [""; 0]);
    // "pod with extended resource claim, feature enabled, running pod"
    assert_eq!(added(with_extended(plain_pod(POD).phase("Running"))), [""; 0]);
    // "…, completed pod", "…, failed pod", "pod with extended resource claim, feature disabled"
    for phase in ["Succeeded", "Failed"] {
        assert_eq!(added(with_extended(plain_pod(POD).phase(phase))), extended);
    }
    // "deleted pod with extended resource claim"
    let last = with_extended(plain_pod(POD).phase("Succeeded")).build();
    assert_eq!(of_pod(&caches, Change::Deleted(&last)), extended);
    // "pod with both regular and extended resource claims, completed"
    assert_eq!(added(with_extended(regular().phase("Succeeded"))), extended);
}

#[test]
fn a_pod_that_ends_leads_to_its_claims_once_recorded_or_not() {
    let caches = cluster(gates_off(), &[own()]);
    let (running, done) = (user().node("node"), user().node("node").phase("Succeeded"));
    let [running, done, named]: [Arc<Pod>; 3] = [running.build(), done.build(), recorded(done, "another").build()];
    let own = ["claim:default/test-pod-acme-resource-1"];
    assert_eq!(of_pod(&caches, Change::Updated { old: &running, new: &done }), own);
    assert_eq!(of_pod(&caches, Change::Updated { old: &done, new: &done }), [""; 0]);
    let both = ["claim:default/another", own[0]];
    assert_eq!(of_pod(&caches, Change::Updated { old: &done, new: &named }), both);
    assert_eq!(of_pod(&caches, Change::Deleted(&running)), own);
    assert_eq!(pod_changed(Change::Deleted(&running)), [Effect::Forget(key(POD), running.metadata.uid)]);
}

#[test]
fn a_claim_wakes_the_pods_that_it_matters_to() {
    let waiting = recorded(user(), CLAIM);
    let bound = recorded(with_entries(plain_pod("bound"), &[templated(ENTRY)]), CLAIM).node("node");
    let done = recorded(with_entries(plain_pod("done"), &[templated(ENTRY)]), CLAIM).phase("Failed");
    let caches = cluster(gates_off(), &[waiting, bound, done]);
    let [plain, ready]: [Arc<ResourceClaim>; 2] = [own().build(), allocated(own()).build()];
    let pods = |change| keys("", caches.pods_of_changed_claim(change));
    assert_eq!(pods(Change::Added(&plain)), ["default/bound", "default/test-pod"]);
    assert_eq!(pods(Change::Deleted(&plain)), ["default/bound", "default/test-pod"]);
    // The scheduler reserves it for those without a node.
    assert_eq!(pods(Change::Updated { old: &plain, new: &ready }), ["default/bound"]);
    assert_eq!(pods(Change::Updated { old: &ready, new: &ready }), [""; 0]);
    // Its pod does not name it yet.
    let caches = cluster(gates_off(), &[user()]);
    assert_eq!(keys("", caches.pods_of_changed_claim(Change::Added(&plain))), ["default/test-pod"]);
}

#[test]
fn a_pod_is_synced_when_it_is_new_bound_or_has_other_claims() {
    let [new, bound, named]: [Arc<Pod>; 3] =
        [user().build(), user().node("node").build(), recorded(user(), CLAIM).build()];
    let own = ["default/test-pod"];
    assert_eq!(keys("", pod_changed(Change::Updated { old: &new, new: &bound })), own);
    assert_eq!(keys("", pod_changed(Change::Updated { old: &new, new: &named })), own);
    assert_eq!(keys("", pod_changed(Change::Updated { old: &new, new: &new })), [""; 0]);
    assert_eq!(keys("", pod_changed(Change::Added(&user().terminating().build()))), [""; 0]);
    assert_eq!(keys("", pod_changed(Change::Added(&user().phase("Failed").build()))), [""; 0]);
}
