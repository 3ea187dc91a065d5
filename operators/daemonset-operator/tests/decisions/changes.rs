//! The effects of a change of a DaemonSet, of a pod, of a revision or of a node: rows of upstream's
//! `daemon_controller_test.go`.

use std::sync::Arc;

use daemonset_operator::controller::changes::{daemon_set_changed, node_changed};
use daemonset_operator::objects::DaemonSet;
use daemonset_operator::objects::node::Node;
use daemonset_operator::objects::pod::Pod;
use daemonset_operator::observe::Caches;
use serde_json::json;
use shared::controllers::revisions::ControllerRevision;
use shared::following::cache::Change;
use shared::testing::{NOW, ObjectBuilder, store, uid};
use shared::working::effect::Effect;

use crate::fixtures::{NEW, SetBuilder, node, orphan, pinned, pod, revision, set, tainted, unready};

/// A DaemonSet of another name and the same selector.
fn web2() -> ObjectBuilder {
    set().set(&["metadata", "name"], "web2").uid_of("web2")
}

fn of_web2(object: ObjectBuilder) -> ObjectBuilder {
    orphan(object).owned_by(&*web2().build::<DaemonSet>())
}

fn caches(sets: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new();
    for set in sets {
        store(&caches.daemon_sets, &set.build::<DaemonSet>());
    }
    caches
}

fn say(effects: Vec<Effect>) -> String {
    let say = |effect: Effect| match effect {
        Effect::Enqueue(key, cause) => format!("{} ({cause:?})", key.name()),
        Effect::EnqueueAfter(key, delay, purpose) => format!("{} in {delay:?} for {purpose}", key.name()),
        Effect::Forget(key, of) => format!("forget {} ({})", key.name(), of == uid("web")),
        Effect::CreationObserved(key) => format!("created for {}", key.name()),
        Effect::DeletionObserved(key, of) => format!("deleted for {} ({})", key.name(), of == uid("web-1")),
    };
    let mut said: Vec<String> = effects.into_iter().map(say).collect();
    said.sort();
    said.join(", ").replace(" (Event)", "")
}

fn added(caches: &Caches, pod: &ObjectBuilder) -> String {
    say(caches.pod_changed(Change::Added(&pod.build())))
}

fn updated(caches: &Caches, old: &ObjectBuilder, new: &ObjectBuilder) -> String {
    let new: Arc<Pod> = new.clone().set(&["metadata", "resourceVersion"], "2").build();
    say(caches.pod_changed(Change::Updated { old: &old.build(), new: &new }))
}

#[test]
fn a_set_is_synced_when_it_changes_and_once_more_when_it_is_gone() {
    let of = |change: Change<'_, DaemonSet>| say(daemon_set_changed(change));
    let web = set().build();
    assert_eq!(of(Change::Added(&web)), "web (Edit)");
    assert_eq!(of(Change::Updated { old: &web, new: &set().generation(2).build() }), "web (Edit)");
    assert_eq!(of(Change::Updated { old: &web, new: &set().label("a", "b").build() }), "web");
    assert_eq!(of(Change::Deleted(&web)), "forget web (true), web");
}

/// Upstream: `TestAddPod`, `TestAddPodOrphan`, `TestDeletePod` and `TestDeletePodOrphan`.
#[test]
fn a_new_pod_wakes_its_set_and_an_orphan_all_that_select_it() {
    let both = caches(&[set(), web2()]);
    let mine = || pod("web-1", "a", NEW);
    assert_eq!(added(&both, &mine()), "created for web, web");
    assert_eq!(added(&both, &of_web2(mine())), "created for web2, web2");
    assert_eq!(added(&both, &orphan(mine())), "web, web2");
    assert_eq!(added(&both, &orphan(mine()).label("app", "other")), "");
    assert_eq!(added(&both, &orphan(mine()).namespace("elsewhere")), "");
    assert_eq!(added(&both, &mine().terminating()), "deleted for web (true), web");
    assert_eq!(added(&both, &orphan(mine()).terminating()), "");
    assert_eq!(added(&caches(&[]), &mine()), "");
    let everything = set().with("selector", json!({}));
    assert_eq!(added(&caches(&[everything]), &orphan(mine())), "", "one that selects everything selects nothing");
    assert_eq!(say(both.pod_changed(Change::Deleted(&mine().build()))), "deleted for web (true), web");
    assert_eq!(say(both.pod_changed(Change::Deleted(&orphan(mine()).build()))), "");
}

/// Upstream: `TestUpdatePod` and those that begin so.
#[test]
fn a_changed_pod_wakes_the_set_before_and_the_set_now() {
    let both = caches(&[set(), web2()]);
    let (mine, nobodys) = (|| pod("web-1", "a", NEW), || orphan(pod("web-1", "a", NEW)));
    assert_eq!(updated(&both, &unready("web-1", "a", NEW), &mine()), "web");
    assert_eq!(updated(&both, &pinned("web-1", "a", NEW), &unready("web-1", "a", NEW)), "web");
    assert_eq!(updated(&both, &mine(), &mine().annotation("a", "b")), "", "nothing that counts has changed");
    assert_eq!(updated(&both, &mine(), &mine().terminating()), "deleted for web (true), web");
    assert_eq!(updated(&both, &of_web2(mine()), &mine()), "web, web2", "change of the controller");
    assert_eq!(updated(&both, &mine(), &nobodys()), "web, web, web2", "release");
    assert_eq!(updated(&both, &nobodys().label("app", "other"), &nobodys()), "web, web2", "orphan with new labels");
    assert_eq!(updated(&both, &orphan(unready("web-1", "a", NEW)), &nobodys()), "", "orphan with the same labels");
    let slow = caches(&[set().with("minReadySeconds", 30)]);
    let got_ready = unready("web-1", "a", NEW).ready_since(NOW);
    let expected = "web, web in 30s for minReadySeconds of a pod";
    assert_eq!(updated(&slow, &unready("web-1", "a", NEW), &got_ready), expected);
}

/// Upstream: `addHistory`, `updateHistory` and `deleteHistory`.
#[test]
fn a_revision_wakes_its_set_unless_it_is_new() {
    let both = caches(&[set(), web2()]);
    let of = |change: Change<'_, ControllerRevision>| say(both.revision_changed(change));
    let (mine, nobodys) = (revision(1, "one").build(), orphan(revision(1, "one")).build());
    assert_eq!(of(Change::Added(&mine)), "");
    assert_eq!(of(Change::Added(&nobodys)), "web, web2");
    assert_eq!(of(Change::Added(&revision(1, "one").terminating().build())), "web");
    assert_eq!(of(Change::Updated { old: &mine, new: &revision(2, "one").build() }), "web");
    assert_eq!(of(Change::Updated { old: &mine, new: &nobodys }), "web, web, web2");
    assert_eq!(of(Change::Updated { old: &nobodys, new: &orphan(revision(2, "one")).build() }), "");
    assert_eq!(of(Change::Deleted(&mine)), "web");
    assert_eq!(of(Change::Deleted(&nobodys)), "");
}

/// Upstream: `TestUpdateNode`.
#[test]
fn a_node_is_looked_at_when_it_is_new_or_its_labels_or_taints_change() {
    let of = |change: Change<'_, Node>| say(node_changed(change));
    let plain = node("a").build();
    let heartbeat = node("a").set(&["status", "conditions"], json!([{ "type": "Ready", "status": "True" }])).build();
    assert_eq!(of(Change::Added(&plain)), "a");
    assert_eq!(of(Change::Updated { old: &plain, new: &heartbeat }), "");
    assert_eq!(of(Change::Updated { old: &plain, new: &node("a").label("disk", "fast").build() }), "a");
    assert_eq!(of(Change::Updated { old: &plain, new: &tainted("a", "k", "NoExecute").build() }), "a");
    assert_eq!(of(Change::Deleted(&plain)), "");
}

#[test]
fn a_node_that_is_gone_wakes_the_sets_that_were_for_it_or_had_a_pod_there() {
    let selective = web2().with_pod("nodeSelector", json!({ "disk": "fast" }));
    let both = caches(&[set(), selective]);
    let gone = |name: &str| say(both.node_lost(Change::Deleted(&node(name).build())));
    assert_eq!(gone("a"), "web");
    store(&both.pods, &of_web2(pinned("web-1", "a", NEW)).build::<Pod>());
    assert_eq!(gone("a"), "web, web2");
    assert_eq!(gone("b"), "web");
    assert_eq!(say(both.node_lost(Change::Added(&node("a").build()))), "");
}
