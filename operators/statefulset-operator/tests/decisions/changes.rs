//! The effects of a change of a StatefulSet, of a pod or of a claim: rows of upstream's `stateful_set_test.go`.

use std::sync::Arc;

use shared::following::cache::Change;
use shared::testing::{NOW, ObjectBuilder, store, uid};
use shared::working::effect::Effect;
use statefulset_operator::controller::changes::stateful_set_changed;
use statefulset_operator::objects::StatefulSet;
use statefulset_operator::objects::claim::PersistentVolumeClaim;
use statefulset_operator::objects::pod::Pod;
use statefulset_operator::observe::Caches;

use crate::fixtures::{NEW, SetBuilder, case, claim, named, orphan, owner, pod, set, unready};

/// A StatefulSet of another name and the same selector.
fn web2() -> ObjectBuilder {
    set(3).set(&["metadata", "name"], "web2").uid_of("web2")
}

fn of_web2(pod: ObjectBuilder) -> ObjectBuilder {
    pod.set(&["metadata", "ownerReferences"], vec![owner("apps/v1", "StatefulSet", "web2", true)])
}

fn caches(sets: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new();
    for set in sets {
        store(&caches.stateful_sets, &set.build::<StatefulSet>());
    }
    caches
}

fn say(effects: Vec<Effect>) -> String {
    let say = |effect: Effect| match effect {
        Effect::Enqueue(key, cause) => format!("{} ({cause:?})", key.name()),
        Effect::EnqueueAfter(key, delay, purpose) => format!("{} in {delay:?} for {purpose}", key.name()),
        Effect::Forget(key, of) => format!("forget {} ({})", key.name(), of == uid("web")),
        effect @ (Effect::CreationObserved(_) | Effect::DeletionObserved(..)) => format!("{effect:?}"),
    };
    let mut said: Vec<String> = effects.into_iter().map(say).collect();
    said.sort();
    said.join(", ").replace(" (Event)", "")
}

fn added(caches: &Caches, pod: &ObjectBuilder) -> String {
    say(caches.pod_changed(Change::Added(&pod.build())))
}

fn deleted(caches: &Caches, pod: &ObjectBuilder) -> String {
    say(caches.pod_changed(Change::Deleted(&pod.build())))
}

fn updated(caches: &Caches, old: &ObjectBuilder, new: &ObjectBuilder) -> String {
    let new: Arc<Pod> = new.clone().set(&["metadata", "resourceVersion"], "2").build();
    say(caches.pod_changed(Change::Updated { old: &old.build(), new: &new }))
}

#[test]
fn a_set_is_synced_when_it_changes_and_once_more_when_it_is_gone() {
    let of = |change: Change<'_, StatefulSet>| say(stateful_set_changed(change));
    let web = set(3).build();
    assert_eq!(of(Change::Added(&web)), "web (Edit)");
    assert_eq!(of(Change::Updated { old: &web, new: &set(4).generation(2).build() }), "web (Edit)");
    assert_eq!(of(Change::Updated { old: &web, new: &set(3).label("a", "b").build() }), "web");
    assert_eq!(of(Change::Deleted(&web)), "forget web (true), web");
}

/// Upstream: `TestStatefulSetControllerAddPod`, `…AddPodOrphan`, `…AddPodNoSet` and `…GetStatefulSetsForPod`.
#[test]
fn a_new_pod_wakes_its_set_and_an_orphan_all_that_select_it() {
    let both = caches(&[set(3), web2()]);
    assert_eq!(added(&both, &pod(0, NEW)), "web");
    assert_eq!(added(&both, &of_web2(pod(0, NEW))), "web2");
    assert_eq!(added(&both, &orphan(pod(0, NEW))), "web, web2");
    assert_eq!(added(&both, &orphan(named("any", 0, NEW))), "web, web2");
    assert_eq!(added(&both, &orphan(pod(0, NEW)).terminating()), "");
    assert_eq!(added(&both, &orphan(pod(0, NEW)).label("app", "other")), "");
    assert_eq!(added(&both, &orphan(pod(0, NEW)).namespace("elsewhere")), "");
    assert_eq!(added(&both, &pod(0, NEW).terminating()), "web");
    assert_eq!(added(&caches(&[]), &pod(0, NEW)), "");
    assert_eq!(added(&caches(&[set(3).uid_of("another")]), &pod(0, NEW)), "");
    let everything = set(3).with("selector", serde_json::json!({}));
    assert_eq!(added(&caches(&[everything]), &orphan(pod(0, NEW))), "", "one that selects everything selects nothing");
}

/// Upstream: `TestStatefulSetControllerUpdatePod` and those that begin so.
#[test]
fn a_changed_pod_wakes_the_set_before_and_the_set_now() {
    let both = caches(&[set(3), web2()]);
    let (mine, nobodys) = (|| pod(0, NEW), || orphan(pod(0, NEW)));
    assert_eq!(updated(&both, &unready(0, NEW), &mine()), "web");
    assert_eq!(updated(&both, &of_web2(unready(0, NEW)), &of_web2(mine())), "web2");
    assert_eq!(updated(&caches(&[]), &unready(0, NEW), &mine()), "", "with no set");
    assert_eq!(updated(&both, &mine(), &mine()), "", "nothing that counts has changed");
    assert_eq!(updated(&both, &of_web2(mine()), &mine()), "web, web2", "change of the controller");
    assert_eq!(updated(&both, &mine(), &nobodys()), "web, web, web2", "release");
    assert_eq!(updated(&both, &nobodys().label("app", "other"), &nobodys()), "web, web2", "orphan with new labels");
    assert_eq!(updated(&both, &orphan(unready(0, NEW)), &nobodys()), "", "orphan with the same labels");
}

/// Upstream: `updatePod`, which looks again when the pod has become available.
#[test]
fn a_pod_that_gets_ready_is_looked_at_again_after_min_ready_seconds() {
    let caches = caches(&[set(3).with("minReadySeconds", 30)]);
    let expected = "web, web in 30s for minReadySeconds of a pod";
    assert_eq!(updated(&caches, &unready(0, NEW), &unready(0, NEW).ready_since(NOW)), expected);
    assert_eq!(updated(&caches, &pod(0, NEW), &unready(0, NEW)), "web");
}

/// Upstream: `TestStatefulSetControllerDeletePod` and `…DeletePodOrphan`.
#[test]
fn a_pod_that_is_gone_wakes_its_set() {
    let both = caches(&[set(3), web2()]);
    assert_eq!(deleted(&both, &pod(0, NEW)), "web");
    assert_eq!(deleted(&both, &of_web2(pod(0, NEW))), "web2");
    assert_eq!(deleted(&both, &orphan(pod(0, NEW))), "");
}

/// Upstream: `TestGetClaimPodName`, of which this is the other way round.
#[test]
fn a_claim_that_is_gone_wakes_the_set_that_makes_it() {
    let dashed = set(1).set(&["metadata", "name"], "a-b").with_claims();
    let both = caches(&[set(3).with_claims(), dashed, web2()]);
    let gone = |name: &str| {
        let claim = claim(0).set(&["metadata", "name"], name).build::<PersistentVolumeClaim>();
        say(both.claim_changed(Change::Deleted(&claim)))
    };
    for (name, expected) in [
        ("data-web-0", "web"),
        ("data-web-77", "web"),
        ("data-a-b-0", "a-b"),
        ("data-web2-0", ""),
        ("logs-web-0", ""),
        ("data-web", ""),
        ("data-web-x", ""),
        ("web-0", ""),
        ("0", ""),
    ] {
        assert_eq!(gone(name), expected, "{name}");
    }
    assert_eq!(say(both.claim_changed(Change::Added(&claim(0).build()))), "");
}

#[test]
fn what_is_observed_is_its_own_or_nobodys() {
    let caches = caches(&[set(2).with_claims()]);
    for pod in [pod(0, NEW), orphan(pod(1, NEW)), of_web2(pod(2, NEW))] {
        store(&caches.pods, &pod.build());
    }
    for ordinal in [0, 1, 7] {
        store(&caches.persistent_volume_claims, &claim(ordinal).build());
    }
    let web = set(2).with_claims();
    let observed = caches.observe(&web.build::<StatefulSet>().metadata.key).unwrap();
    let mut names: Vec<&str> = observed.pods.iter().map(|pod| pod.metadata.name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["web-0", "web-1"]);
    assert_eq!(observed.claims.keys().collect::<Vec<_>>(), ["data-web-0", "data-web-1"]);
    let alone = case(web, [pod(0, NEW)]).claims([claim(0), claim(1)]).observed();
    assert_eq!(alone.claims, observed.claims);
    assert!(caches.observe(&shared::api::object::Key::new("default", "none")).is_none());
}
