//! Which claim gets, keeps or loses its finalizer, and which changes lead to a sync of it: upstream's cases, and
//! properties of any claim and pods.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use persistentvolumeclaim_protection_operator::controller::changes::claim_changed;
use persistentvolumeclaim_protection_operator::objects::pod::Pod;
use persistentvolumeclaim_protection_operator::objects::{PROTECTION, PersistentVolumeClaim};
use persistentvolumeclaim_protection_operator::observe::{Caches, Observed, using};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::{Key, ResourceVersion};
use shared::controllers::protection::observe::UserCaches;
use shared::controllers::protection::plan::{Next, Plan, plan};
use shared::controllers::protection::users::UsingPods;
use shared::following::cache::Change;
use shared::testing::properties::order_is_irrelevant;
use shared::testing::protobuf::read_pod;
use shared::testing::{ObjectBuilder, object, pod, store, uid};
use shared::working::control::Preconditions;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

const ADD: &str = "add the finalizer (lacks the finalizer)";
const ASK: &str = "list the pods of its namespace (no pod in the cache uses it)";
const KEEP: &str = "keep (used by pods: web)";
const PROTECTED: &str = "keep (has the finalizer)";
const RECHECK: &str = "keep and check again (used by pods that are not in the cache: web)";
const REMOVE: &str = "remove the finalizer (no pod uses it)";

fn claim(name: &str) -> ObjectBuilder {
    object("v1", "PersistentVolumeClaim", name)
}

fn protected(claim: ObjectBuilder) -> ObjectBuilder {
    claim.set(&["metadata", "finalizers"], json!(["example.com/hold", PROTECTION.finalizer]))
}

fn deleted() -> ObjectBuilder {
    protected(claim("data")).terminating()
}

fn named(claim: &str) -> Value {
    json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } })
}

fn ephemeral(volume: &str) -> Value {
    json!({ "name": volume, "ephemeral": { "volumeClaimTemplate": { "spec": {} } } })
}

fn with(pod: ObjectBuilder, volumes: &[Value]) -> ObjectBuilder {
    pod.set(&["spec", "volumes"], json!(volumes))
}

/// The pod `web`, which uses the claim `data`.
fn user() -> ObjectBuilder {
    with(pod("web"), &[named("data")])
}

fn unscheduled(pod: ObjectBuilder) -> ObjectBuilder {
    pod.node("")
}

fn cluster(claims: &[ObjectBuilder], pods: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new();
    for claim in claims {
        store(&caches.persistent_volume_claims, &claim.build());
    }
    for pod in pods {
        store(&caches.pods, &pod.build());
    }
    caches
}

/// The pods that a live list shows to use this claim.
fn listed(claim: &PersistentVolumeClaim, pods: &[ObjectBuilder]) -> UsingPods {
    using(claim, &pods.iter().map(ObjectBuilder::build).collect::<Vec<_>>())
}

/// The stages for the claim `data`, with these pods in the cache and those live.
fn stages(claim: &ObjectBuilder, cached: &[ObjectBuilder], live: &[ObjectBuilder]) -> Vec<String> {
    let caches = cluster(std::slice::from_ref(claim), cached);
    let observed = caches.observe(&Key::new("default", "data")).unwrap();
    let first = plan(&observed);
    let mut stages = vec![first.stage().text];
    if matches!(first, Next::Ask(_)) {
        let live = Some(listed(&observed.object, live));
        stages.push(plan(&Observed { live, ..observed }).stage().text);
    }
    stages
}

#[track_caller]
fn check(claim: &ObjectBuilder, pods: &[ObjectBuilder], expected: &[&str]) {
    assert_eq!(stages(claim, pods, pods), expected);
}

/// Upstream: `TestPVCProtectionController`, its events of claims. Its failing requests, and those with several claims, are in
/// `sync.rs`. Left out: the gate `PersistentVolumeClaimUnusedSinceTime`, which is off.
#[test]
fn a_claim_is_protected_and_goes_once_no_pod_uses_it() {
    // "PVC without finalizer -> finalizer is added"
    check(&claim("data"), &[], &[ADD]);
    // "PVC with finalizer -> no action", "feature disabled: unused PVC with no pods -> no condition action"
    check(&protected(claim("data")), &[], &[PROTECTED]);
    // "deleted PVC with finalizers across different namespaces -> finalizer is removed"
    check(&deleted(), &[], &[ASK, REMOVE]);
    check(&deleted(), &[user().namespace("another")], &[ASK, REMOVE]);
    // "deleted PVC with finalizer + pod with the PVC exists -> finalizer is not removed"
    check(&deleted(), &[user()], &[KEEP]);
    // "deleted PVC with finalizer + pod with unrelated PVC and EmptyDir exists -> finalizer is removed", and for several
    let unrelated = with(pod("web"), &[named("unrelated"), json!({ "name": "emptyDir", "emptyDir": {} })]);
    check(&deleted(), &[unrelated], &[ASK, REMOVE]);
    // "deleted PVC with finalizer + pod with the PVC finished but is not deleted -> finalizer is not removed"
    check(&deleted(), &[user().phase("Failed")], &[KEEP]);
    // "deleted PVC with finalizer + pod with the PVC exists but is not in the Informer's cache yet -> finalizer is not
    // removed"
    assert_eq!(stages(&deleted(), &[], &[user()]), [ASK, RECHECK]);
    // Whoever removed it meant that.
    check(&claim("data").terminating(), &[], &["keep (being deleted without the finalizer)"]);
}

/// Upstream: `TestPVCProtectionController`, its events of pods: what is decided after each.
#[test]
fn a_pod_keeps_its_claim_from_its_node_to_its_end() {
    // "updated running Pod -> no action"
    check(&deleted(), &[user().phase("Running")], &[KEEP]);
    // "updated finished Pod -> finalizer is not removed"
    check(&deleted(), &[user().phase("Succeeded")], &[KEEP]);
    // "updated unscheduled Pod -> finalizer is removed"
    check(&deleted(), &[unscheduled(user())], &[ASK, REMOVE]);
    // "pod delete and create with same namespaced name seen as an update, old pod used deleted PVC -> finalizer is removed"
    check(&deleted(), &[pod("web").uid_of("new")], &[ASK, REMOVE]);
    // "… old pod used non-deleted PVC -> finalizer is not removed"
    check(&protected(claim("data")), &[pod("web").uid_of("new")], &[PROTECTED]);
    // "… both pods reference deleted PVC -> finalizer is not removed"
    check(&deleted(), &[user().uid_of("new")], &[KEEP]);
    // "pod update from unscheduled to scheduled, deleted PVC is referenced -> finalizer is not removed"
    check(&deleted(), &[user()], &[KEEP]);
}

#[test]
fn an_ephemeral_volume_keeps_the_claim_that_is_its_pods_own_until_the_pod_is_shut_down() {
    let user = with(pod("web"), &[ephemeral("data")]);
    let own = |of: &ObjectBuilder| {
        let pod: Arc<Pod> = of.build();
        protected(claim("web-data").owned_by(&*pod)).terminating()
    };
    let uses = |pod: &ObjectBuilder, claim: &ObjectBuilder| {
        let (pod, claim): (Arc<Pod>, Arc<PersistentVolumeClaim>) = (pod.build(), claim.build());
        pod.uses(&claim)
    };
    assert!(uses(&user, &own(&user)));
    assert!(!uses(&unscheduled(user.clone()), &own(&user)));
    assert!(!uses(&user, &protected(claim("web-data")).terminating()), "it was there before the pod");
    assert!(!uses(&user.clone().uid_of("new"), &own(&user)), "it is of an earlier pod");
    let going = |grace: i64| user.clone().terminating().set(&["metadata", "deletionGracePeriodSeconds"], grace);
    assert!(uses(&going(30), &own(&user)));
    assert!(!uses(&going(0), &own(&user)), "the kubelet is done with it");
    // A claim that is named stays until the pod is gone.
    let names = with(user.terminating().set(&["metadata", "deletionGracePeriodSeconds"], 0), &[named("data")]);
    assert!(uses(&names, &deleted()));
}

#[test]
fn a_pod_is_read_alike_from_protobuf_and_json() {
    let pods =
        [pod("web"), user(), unscheduled(user()), with(pod("web"), &[ephemeral("a"), named("b"), ephemeral("c")])];
    for pod in pods {
        let from_json: Arc<Pod> = pod.build();
        assert_eq!(read_pod::<Pod>(pod.json()).unwrap(), *from_json);
    }
    let volumes: Arc<Pod> = with(pod("web"), &[ephemeral("a"), named("b")]).build();
    let keys: Vec<String> = volumes.claim_keys().map(|key| key.to_string()).collect();
    assert_eq!(keys, ["default/b", "default/web-a"]);
}

#[test]
fn a_write_is_about_the_state_that_was_observed() {
    let expected = Preconditions { uid: uid("data"), resource_version: Some(ResourceVersion(1)) };
    for (claim, live) in [(claim("data"), None), (deleted(), Some(UsingPods::default()))] {
        let observed = cluster(&[claim], &[]).observe(&Key::new("default", "data")).unwrap();
        let planned = plan(&Observed { live, ..observed });
        let Next::Execute(Plan::Add { preconditions } | Plan::Remove { preconditions }) = planned else {
            panic!("{planned:?}")
        };
        assert_eq!(preconditions, expected);
    }
}

fn enqueued(name: &str) -> Effect {
    Effect::Enqueue(Key::new("default", name), Cause::Event)
}

#[test]
fn a_change_of_a_claim_leads_to_a_sync_if_the_finalizer_is_missing_or_may_go() {
    let check = |claim: &ObjectBuilder, is_synced: bool| {
        let claim: Arc<PersistentVolumeClaim> = claim.build();
        let effects = if is_synced { vec![enqueued("data")] } else { Vec::new() };
        assert_eq!(claim_changed(Change::Added(&claim)), effects);
        assert_eq!(claim_changed(Change::Updated { old: &claim, new: &claim }), effects);
        assert_eq!(claim_changed(Change::Deleted(&claim)), []);
    };
    check(&claim("data"), true);
    check(&deleted(), true);
    check(&protected(claim("data")), false);
    check(&claim("data").terminating(), false);
}

/// Upstream: `TestPVCProtectionController`, its events of pods: which claims are synced after each.
#[test]
fn a_change_of_a_pod_leads_to_a_sync_of_the_claims_that_it_frees() {
    let caches = cluster(&[deleted(), protected(claim("other"))], &[]);
    let volumes = [named("data"), named("other"), named("missing")];
    let user: Arc<Pod> = with(pod("web"), &volumes).build();
    // "deleted running Pod -> finalizer is removed"
    assert_eq!(caches.pod_changed(Change::Deleted(&user)), [enqueued("data")]);
    // "updated running Pod -> no action"
    assert_eq!(caches.pod_changed(Change::Updated { old: &user, new: &user }), []);
    assert_eq!(caches.pod_changed(Change::Added(&user)), []);
    // "pod update from unscheduled to scheduled, deleted PVC is referenced -> finalizer is not removed"
    let waiting: Arc<Pod> = unscheduled(with(pod("web"), &volumes)).build();
    assert_eq!(caches.pod_changed(Change::Updated { old: &waiting, new: &user }), []);
    // An ephemeral volume frees its claim before its pod is gone.
    let ephemeral = with(pod("web"), &[ephemeral("data")]);
    let running: Arc<Pod> = ephemeral.build();
    let own = protected(claim("web-data").owned_by(&*running)).terminating();
    store(&caches.persistent_volume_claims, &own.build());
    let ended: Arc<Pod> = ephemeral.terminating().set(&["metadata", "deletionGracePeriodSeconds"], 0).build();
    assert_eq!(caches.pod_changed(Change::Updated { old: &running, new: &ended }), [enqueued("web-data")]);
    // Without a state in between, as where it is deleted by force.
    assert_eq!(caches.pod_changed(Change::Deleted(&ended)), [enqueued("web-data")]);
}

#[derive(Clone, Debug)]
struct AnyPod {
    volume: Value,
    is_scheduled: bool,
    is_shut_down: bool,
}

impl AnyPod {
    fn builder(&self, n: usize) -> ObjectBuilder {
        let pod = with(pod(&n.to_string()), std::slice::from_ref(&self.volume));
        let pod = if self.is_scheduled { pod } else { unscheduled(pod) };
        if self.is_shut_down { pod.terminating() } else { pod }
    }
}

fn any_pods() -> impl Strategy<Value = Vec<AnyPod>> {
    // The claim of the ephemeral volume has another name.
    let volumes = prop::sample::select(vec![named("data"), named("other"), ephemeral("data")]);
    let any_pod = (volumes, any::<bool>(), any::<bool>()).prop_map(|(volume, is_scheduled, is_shut_down)| AnyPod {
        volume,
        is_scheduled,
        is_shut_down,
    });
    prop::collection::vec(any_pod, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_finalizer_goes_if_and_only_if_a_live_list_shows_no_user(pods in any_pods(), cached in 0..4_usize) {
        let builders: Vec<ObjectBuilder> = pods.iter().enumerate().map(|(n, pod)| pod.builder(n)).collect();
        let stages = stages(&deleted(), &builders[..cached.min(builders.len())], &builders);
        let is_used = pods.iter().any(|pod| pod.is_scheduled && pod.volume == named("data"));
        prop_assert_eq!(stages.last().unwrap() == REMOVE, !is_used, "{:?}", stages);
        prop_assert!(stages[0] != REMOVE, "nothing was listed");
    }

    #[test]
    fn a_claim_that_a_pod_keeps_is_synced_when_the_pod_goes(pod in any_pods().prop_filter_map("a pod", |pods| pods.first().cloned())) {
        let claim = deleted();
        let caches = cluster(std::slice::from_ref(&claim), &[]);
        let pod: Arc<Pod> = pod.builder(0).build();
        let is_kept = pod.uses(&claim.build::<PersistentVolumeClaim>());
        let is_synced = caches.pod_changed(Change::Deleted(&pod)) == [enqueued("data")];
        prop_assert!(is_synced || !is_kept);
    }

    #[test]
    fn the_order_of_pods_is_irrelevant(pods in any_pods()) {
        let builders: Vec<ObjectBuilder> = pods.iter().enumerate().map(|(n, pod)| pod.builder(n)).collect();
        order_is_irrelevant(&builders, |builders| stages(&deleted(), builders, builders));
    }
}
