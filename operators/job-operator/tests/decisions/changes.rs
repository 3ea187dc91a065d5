//! The effects of a change of a Job or of a pod. Upstream: `TestAddPod`, `TestUpdatePod`, `TestDeletePod` and their
//! neighbours, `pkg/controller/job/job_controller_test.go`.

use std::sync::Arc;

use job_operator::controller::changes;
use job_operator::controller::changes::tracking::{TrackingEffect, tracked_job_changed};
use job_operator::objects::pod::Pod;
use job_operator::objects::{CONTROLLER_UID, Job};
use job_operator::observe::Caches;
use serde_json::json;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::testing::{ObjectBuilder, store, uid};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::fixtures::{FINALIZER, Spec, job, orphan, pod, untracked};

/// The Job `pi` as it is given, and one of another selector.
fn caches(pi: &ObjectBuilder) -> Caches {
    let (caches, _) = Caches::new();
    store(&caches.jobs, &pi.build());
    let other = json!({ "matchLabels": { "job": "other" } });
    store(&caches.jobs, &job(1, 1).set(&["metadata", "name"], "other").uid_of("other").with("selector", other).build());
    caches
}

fn finished() -> ObjectBuilder {
    job(1, 1).condition("Complete", "True", "", "")
}

fn say_tracking(effect: TrackingEffect) -> Option<String> {
    match effect {
        TrackingEffect::ReleaseObserved(key, pod) => Some(format!("released of {} ({})", key.name(), pod == uid("a"))),
        TrackingEffect::External(name) => Some(format!("external {name}")),
        TrackingEffect::Tracked(is_added) => Some(format!("tracked {is_added}")),
        // As the Job's own effects say.
        TrackingEffect::Forget(_) => None,
    }
}

fn say_orphan(effect: &Effect) -> String {
    if let Effect::Enqueue(pod, Cause::Event) = effect {
        format!("orphan {}", pod.name())
    } else {
        format!("{effect:?}")
    }
}

fn say(effect: Effect) -> String {
    match effect {
        Effect::Enqueue(key, cause) => format!("enqueue {} ({cause:?})", key.name()),
        Effect::EnqueueAfter(key, _, _) => format!("gather {}", key.name()),
        Effect::CreationObserved(key) => format!("created for {}", key.name()),
        Effect::DeletionObserved(key, pod) => format!("deleted of {} ({})", key.name(), pod == uid("a")),
        Effect::Forget(key, job) => format!("forget {} ({})", key.name(), job == uid("pi")),
    }
}

fn together(tracking: Vec<TrackingEffect>, orphans: &[Effect], effects: Vec<Effect>) -> String {
    let tracking = tracking.into_iter().filter_map(say_tracking);
    let said: Vec<String> =
        tracking.chain(orphans.iter().map(say_orphan)).chain(effects.into_iter().map(say)).collect();
    said.join(", ").replace(" (true)", "")
}

/// All that a change of a Job means.
fn job_changed(caches: &Caches, change: Change<'_, Job>) -> String {
    let orphans = caches.orphaning_job_changed(change);
    together(tracked_job_changed(change), &orphans, changes::job_changed(change))
}

/// All that a change of a pod means.
fn pod_changed(caches: &Caches, change: Change<'_, Pod>) -> String {
    together(caches.tracked_pod_changed(change), &caches.orphan_pod_changed(change), caches.pod_changed(change))
}

/// The same pod, later.
fn later(pod: ObjectBuilder) -> Arc<Pod> {
    pod.set(&["metadata", "resourceVersion"], "2").build()
}

#[test]
fn a_new_or_edited_job_is_synced_at_once_and_another_status_of_it_after_a_while() {
    let caches = caches(&job(1, 1));
    let added = |job: ObjectBuilder| job_changed(&caches, Change::Added(&job.build()));
    assert_eq!(added(job(1, 1)), "enqueue pi (Edit)");
    assert_eq!(added(job(1, 1).with("managedBy", "x.io/y")), "external x.io/y, enqueue pi (Edit)");
    assert_eq!(added(job(1, 1).with("managedBy", "kubernetes.io/job-controller")), "enqueue pi (Edit)");
    let updated = |new: ObjectBuilder| {
        job_changed(&caches, Change::Updated { old: &job(1, 1).generation(1).build(), new: &new.build() })
    };
    assert_eq!(updated(job(1, 1).generation(2)), "enqueue pi (Edit)");
    assert_eq!(updated(job(1, 1).generation(1).said("active", 1)), "gather pi");
    assert_eq!(updated(finished().generation(2)), "gather pi");
}

#[test]
fn what_a_job_leaves_behind_when_it_ends_is_looked_at() {
    let caches = caches(&job(1, 1));
    store(&caches.pods, &pod("a", "Running").build());
    store(&caches.pods, &untracked("b", "Running").build());
    store(&caches.pods, &orphan("c", "Running").set(&["metadata", "finalizers"], json!([FINALIZER])).build());
    let ended = job_changed(&caches, Change::Updated { old: &job(1, 1).build(), new: &finished().build() });
    assert_eq!(ended, "orphan a, gather pi");
    let gone = job_changed(&caches, Change::Deleted(&job(1, 1).build()));
    assert_eq!(gone, "orphan a, forget pi, enqueue pi (Event)");
}

/// Upstream: `TestAddPod`, `TestAddPodOrphan`.
#[test]
fn a_new_pod_is_one_that_its_job_waits_for() {
    let added = |pi: &ObjectBuilder, pod: ObjectBuilder| pod_changed(&caches(pi), Change::Added(&pod.build()));
    let running = job(1, 1);
    assert_eq!(added(&running, pod("a", "Running")), "created for pi, gather pi");
    assert_eq!(added(&running, pod("a", "Failed")), "tracked true, created for pi, gather pi");
    assert_eq!(added(&finished(), pod("a", "Running")), "orphan a, created for pi, gather pi");
    // Another Job of that name, or none.
    let before = job(1, 1).uid_of("before");
    assert_eq!(added(&before, pod("a", "Running")), "orphan a");
    assert_eq!(added(&before, untracked("a", "Running")), "");
    // It was not made for what is expected today.
    assert_eq!(added(&running, pod("a", "Running").terminating()), "deleted of pi, gather pi");
    let kept = |pod: ObjectBuilder| pod.set(&["metadata", "finalizers"], json!([FINALIZER]));
    assert_eq!(added(&running, orphan("a", "Running")), "gather pi");
    assert_eq!(added(&running, kept(orphan("a", "Running"))), "orphan a, gather pi");
    assert_eq!(added(&running, orphan("a", "Running").label("job", "none")), "");
    assert_eq!(added(&running, orphan("a", "Running").namespace("elsewhere")), "");
    assert_eq!(added(&running, shared::testing::pod("a")), "");
    assert_eq!(added(&running, kept(orphan("a", "Running")).terminating()), "orphan a");
}

/// Upstream: `TestUpdatePod`, `TestUpdatePodOrphanWithNewLabels`, `TestUpdatePodChangeControllerRef`, `TestUpdatePodRelease`.
#[test]
fn a_changed_pod_wakes_the_job_before_and_the_job_now() {
    let caches = caches(&job(1, 1));
    let updated = |old: ObjectBuilder, new: ObjectBuilder| {
        pod_changed(&caches, Change::Updated { old: &old.build(), new: &later(new) })
    };
    let a = || pod("a", "Running");
    assert_eq!(updated(a(), a()), "");
    assert_eq!(updated(a(), a().ready()), "gather pi");
    assert_eq!(updated(a(), pod("a", "Succeeded")), "tracked true, gather pi");
    assert_eq!(updated(pod("a", "Succeeded"), untracked("a", "Succeeded")), "tracked false, released of pi, gather pi");
    assert_eq!(updated(a(), a().terminating()), "deleted of pi, gather pi");
    assert_eq!(updated(a(), untracked("a", "Running").terminating()), "released of pi, deleted of pi, gather pi");
    // Released, and it still matches; and the other way round.
    assert_eq!(updated(a(), orphan("a", "Running")), "released of pi, gather pi, gather pi");
    assert_eq!(updated(orphan("a", "Running"), a()), "gather pi");
    let of_none = || orphan("a", "Running").label("job", "none");
    assert_eq!(updated(of_none(), orphan("a", "Running")), "gather pi");
    assert_eq!(updated(of_none(), of_none().ready()), "");
    assert_eq!(updated(orphan("a", "Running"), of_none().label("job", "other")), "gather other");
}

/// Upstream: `TestDeletePod`, `TestDeletePodOrphan`.
#[test]
fn a_pod_that_is_gone_was_seen_to_go() {
    let gone = |pi: &ObjectBuilder, pod: ObjectBuilder| pod_changed(&caches(pi), Change::Deleted(&pod.build()));
    let running = job(1, 1);
    assert_eq!(gone(&running, pod("a", "Running")), "released of pi, deleted of pi, gather pi");
    assert_eq!(gone(&running, pod("a", "Failed")), "tracked false, released of pi, deleted of pi, gather pi");
    assert_eq!(gone(&running, untracked("a", "Failed")), "released of pi, deleted of pi, gather pi");
    assert_eq!(gone(&finished(), pod("a", "Running")), "");
    assert_eq!(gone(&job(1, 1).uid_of("before"), pod("a", "Running")), "");
    assert_eq!(gone(&running, orphan("a", "Running")), "");
}

#[test]
fn a_pod_that_vanishes_with_its_finalizer_is_a_question_where_nothing_explains_it() {
    let labelled = job(1, 1).with("selector", json!({ "matchLabels": { CONTROLLER_UID: "pi" } }));
    let is_asked_of = |caches: &Caches, pod: &ObjectBuilder| caches.vanished(Change::Deleted(&pod.build())).is_some();
    let is_asked = |pi: &ObjectBuilder, pod: &ObjectBuilder| is_asked_of(&caches(pi), pod);
    let (a, deleted) = (pod("a", "Running"), pod("a", "Running").terminating());
    assert!(is_asked(&labelled, &a) && is_asked(&labelled, &deleted));
    assert!(!is_asked(&labelled, &untracked("a", "Running")), "it may go as it likes");
    assert!(!is_asked(&job(1, 1), &a), "all pods of the namespace are followed");
    let gone = job(1, 1).uid_of("another");
    assert!(is_asked(&gone, &a) && !is_asked(&gone, &deleted), "it waits for its finalizer to go");

    let (key, of, uid) = (Key::new("default", "pi"), uid("pi"), a.build::<Pod>().metadata.uid);
    let known = caches(&labelled);
    known.memory.begin_release(&key, of, uid);
    assert!(!is_asked_of(&known, &deleted), "this process releases it");
    assert!(known.memory.cancel_release(&key, uid), "it was not seen without");
    assert!(is_asked_of(&known, &deleted));
    known.memory.begin_release(&key, of, uid);
    known.memory.release_observed(&key, uid);
    assert!(!known.memory.cancel_release(&key, uid), "it was seen without");
}
