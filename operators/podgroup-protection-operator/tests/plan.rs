//! Which PodGroup keeps or loses its finalizer, and which changes lead to a sync of it: upstream's cases, and properties of
//! any groups and pods.
//!
//! Upstream's `TestGetPod` is about Go's untyped handlers, which have no counterpart here. Pods that have ended are not
//! watched: for a cache they are gone, which `TestIsPodTerminated` becomes in `sync.rs`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use podgroup_protection_operator::controller::changes::group_changed;
use podgroup_protection_operator::objects::pod::Pod;
use podgroup_protection_operator::objects::{PROTECTION, PodGroup};
use podgroup_protection_operator::observe::{Caches, Observed};
use proptest::prelude::*;
use serde_json::json;
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

const NAME: &str = "my-podgroup";
const ASK: &str = "list the pods of its namespace (no pod in the cache uses it)";
const PROTECTED: &str = "keep (has the finalizer)";
const UNPROTECTED: &str = "keep (lacks the finalizer)";
const LET_GO: &str = "keep (being deleted without the finalizer)";
const REMOVE: &str = "remove the finalizer (no pod uses it)";

fn group() -> ObjectBuilder {
    object("scheduling.k8s.io/v1alpha2", "PodGroup", NAME)
}

fn protected(group: ObjectBuilder) -> ObjectBuilder {
    group.set(&["metadata", "finalizers"], json!(["example.com/hold", PROTECTION.finalizer]))
}

fn deleted() -> ObjectBuilder {
    protected(group()).terminating()
}

fn of_group(name: &str, group: &str) -> ObjectBuilder {
    pod(name).set(&["spec", "schedulingGroup", "podGroupName"], group)
}

fn key() -> Key {
    Key::new("default", NAME)
}

fn cluster(group: &ObjectBuilder, pods: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new();
    store(&caches.pod_groups, &group.build());
    for pod in pods {
        store(&caches.pods, &pod.build());
    }
    caches
}

/// The stages, where a live list shows what the cache does.
fn stages(group: &ObjectBuilder, pods: &[ObjectBuilder]) -> Vec<String> {
    let observed = cluster(group, pods).observe(&key()).unwrap();
    let first = plan(&observed);
    let mut stages = vec![first.stage().text];
    if matches!(first, Next::Ask(_)) {
        let live = Some(observed.cached.clone());
        stages.push(plan(&Observed { live, ..observed }).stage().text);
    }
    stages
}

#[track_caller]
fn check(group: &ObjectBuilder, pods: &[ObjectBuilder], expected: &[&str]) {
    assert_eq!(stages(group, pods), expected);
}

/// Upstream: `TestPodGroupProtectionController`, its cases without pods that have ended.
#[test]
fn a_group_that_is_being_deleted_stays_until_it_has_no_pod() {
    let user = || of_group("pod-1", NAME);
    // "new PodGroup without finalizer, no action (admission plugin handles it)"
    check(&group(), &[], &[UNPROTECTED]);
    // "new PodGroup without finalizer, active pod exists, …", "new unscheduled pod, PodGroup without finalizer, …"
    check(&group(), &[user()], &[UNPROTECTED]);
    check(&group(), &[user().node("")], &[UNPROTECTED]);
    // "PodGroup with finalizer, not being deleted, …", "pod without schedulingGroup -> no PodGroup action"
    check(&protected(group()), &[], &[PROTECTED]);
    check(&protected(group()), &[pod("pod-1")], &[PROTECTED]);
    // "deleted PodGroup with finalizer, no active pods, …"
    check(&deleted(), &[], &[ASK, REMOVE]);
    // "deleted PodGroup with finalizer, active pod exists, …"
    check(&deleted(), &[user()], &["keep (used by pods: pod-1)"]);
    // "PodGroup without finalizer, already deleted, …", without and with active pods
    let let_go = group().terminating();
    check(&let_go, &[], &[LET_GO]);
    check(&let_go, &[user()], &[LET_GO]);
}

/// Upstream: `TestHasActivePods` and `TestActivePodSchedulingGroupIndexer`.
#[test]
fn only_the_pods_that_name_a_group_use_it() {
    let users = |pods: &[ObjectBuilder]| cluster(&deleted(), pods).observe(&key()).unwrap().cached.pods;
    assert_eq!(users(&[]), [""; 0]);
    assert_eq!(users(&[of_group("pod-1", NAME), of_group("pod-2", "other-pg"), pod("pod-3")]), ["pod-1"]);
    let unnamed = pod("pod-4").set(&["spec", "schedulingGroup"], json!({}));
    let elsewhere = of_group("pod-5", NAME).namespace("another");
    assert_eq!(users(&[unnamed, elsewhere, of_group("pod-6", "")]), [""; 0]);
}

#[test]
fn a_pod_reads_alike_in_both_forms() {
    for pod in [pod("a"), of_group("a", NAME)] {
        let (json, protobuf): (Arc<Pod>, Pod) = (pod.build(), read_pod(pod.json()).unwrap());
        assert_eq!(*json, protobuf);
    }
}

#[test]
fn what_only_a_live_list_shows_keeps_a_group() {
    let observed = cluster(&deleted(), &[]).observe(&key()).unwrap();
    let live = Some(["pod-1"].into_iter().collect::<UsingPods>());
    let text = plan(&Observed { live, ..observed }).stage().text;
    assert_eq!(text, "keep and check again (used by pods that are not in the cache: pod-1)");
}

#[test]
fn the_patch_is_for_the_observed_state() {
    let observed = cluster(&deleted(), &[]).observe(&key()).unwrap();
    let planned = plan(&Observed { live: Some(UsingPods::default()), ..observed });
    let preconditions = Preconditions { uid: uid(NAME), resource_version: Some(ResourceVersion(1)) };
    assert_eq!(planned, Next::Execute(Plan::Remove { preconditions }));
}

/// The keys that are synced.
fn keys(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Enqueue(of, _) if *of == key())).count()
}

/// Upstream: `TestHandlePodGroupUpdate`.
#[test]
fn a_group_is_synced_if_it_may_lose_its_finalizer() {
    for (group, expected) in [(group(), 0), (deleted(), 1), (protected(group()), 0)] {
        let group: Arc<PodGroup> = group.build();
        assert_eq!(keys(&group_changed(Change::Added(&group))), expected);
        assert_eq!(keys(&group_changed(Change::Updated { old: &group, new: &group })), expected);
        assert_eq!(keys(&group_changed(Change::Deleted(&group))), 0);
    }
}

/// Upstream: `TestHandlePodChange`. A pod that has ended, or that another one of its name replaces, is gone here.
#[test]
fn a_pod_that_is_gone_frees_its_group() {
    let caches = cluster(&deleted(), &[]);
    let changed = |old: Option<ObjectBuilder>, new: Option<ObjectBuilder>| {
        let (old, new): (Option<Arc<Pod>>, Option<Arc<Pod>>) = (old.map(|pod| pod.build()), new.map(|pod| pod.build()));
        keys(&match (&old, &new) {
            (Some(old), Some(new)) => caches.pod_changed(Change::Updated { old, new }),
            (None, Some(new)) => caches.pod_changed(Change::Added(new)),
            (Some(old), None) => caches.pod_changed(Change::Deleted(old)),
            (None, None) => Vec::new(),
        })
    };
    let user = || of_group("pod-1", NAME);
    // "deleted pod with schedulingGroup enqueues", "terminated pod enqueues", "UID mismatch …", each for the old pod
    assert_eq!(changed(Some(user()), None), 1);
    // "unscheduled new pod does not enqueue", "scheduled running pod does not enqueue"
    assert_eq!(changed(None, Some(user().node(""))), 0);
    assert_eq!(changed(None, Some(user())), 0);
    assert_eq!(changed(Some(user()), Some(user().ready())), 0);
    // "deleted pod without schedulingGroup does not enqueue", "deleted pod with nil podGroupName does not enqueue"
    assert_eq!(changed(Some(pod("pod-1")), None), 0);
    assert_eq!(changed(Some(pod("pod-1").set(&["spec", "schedulingGroup"], json!({}))), None), 0);
    assert_eq!(changed(Some(of_group("pod-1", "other-pg")), None), 0);
}

proptest! {
    /// The finalizer goes only from a group that is being deleted and that no pod names, in any order of the pods.
    #[test]
    fn the_finalizer_goes_if_and_only_if_no_pod_names_the_group(
        pods in proptest::collection::vec((0..4_usize, any::<bool>()), 0..5),
        is_deleted in any::<bool>(),
        is_protected in any::<bool>(),
    ) {
        let builders: Vec<ObjectBuilder> = pods.iter().enumerate().map(|(at, (group, is_here))| {
            let pod = of_group(&format!("p{at}"), [NAME, "a", "b", "c"][*group]);
            if *is_here { pod } else { pod.namespace("another") }
        }).collect();
        let group = if is_protected { protected(group()) } else { group() };
        let group = if is_deleted { group.terminating() } else { group };
        let is_used = pods.iter().any(|(group, is_here)| *group == 0 && *is_here);
        let is_removed = stages(&group, &builders).last().is_some_and(|stage| stage == REMOVE);
        prop_assert_eq!(is_removed, is_deleted && is_protected && !is_used);
        order_is_irrelevant(&builders, |pods| stages(&group, pods));
    }
}
