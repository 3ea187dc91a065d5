use super::*;
use crate::api::object::Object;
use crate::controllers::replicas::fixtures::{Set, selecting};
use crate::testing::{NOW, ObjectBuilder, ago, pod};
use jiff::SignedDuration;
use serde_json::json;

fn web(template: &str) -> Arc<Set> {
    let labels = json!({ "app": "web", "of": template });
    selecting("web", "web").set(&["spec", "template"], json!({ "metadata": { "labels": labels } })).build()
}

/// A pod of `web`'s that its node has, and that has not run.
fn waiting(name: &str) -> ObjectBuilder {
    pod(name).owned_by(&*web("a")).phase("Pending")
}

fn leave(rejected: &Rejected, pod: &ObjectBuilder, now: Timestamp) {
    rejected.pod_changed::<Set>(&Change::Deleted(&pod.build()), now);
}

/// The names of the pods that are to be read.
fn ended(rejected: &Rejected, owner: &Set, now: Timestamp) -> String {
    let (_, ended) = rejected.of(owner, &[], now);
    ended.iter().map(|pod| pod.key.name().to_owned()).collect::<Vec<_>>().join(",")
}

/// So many rejections of pods that were created at this moment.
fn note(rejected: &Rejected, owner: &Set, count: usize, created: Timestamp) -> Option<Rejection> {
    leave(rejected, &waiting("any"), NOW);
    let (_, read) = rejected.of(owner, &[], NOW);
    let (template, reason) = (Text::default(), Text::new("OutOfcpu"));
    let one = Rejection { template, reason, created: Some(Time::of(created)) };
    rejected.note(owner, &read, vec![one; count], NOW)
}

fn later(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

#[test]
fn only_a_pod_that_was_on_a_node_and_did_not_run_is_read() {
    let rejected = Rejected::default();
    let job = web("a").meta().uid;
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": job, "controller": true });
    for pod in [
        waiting("ran").phase("Running"),
        waiting("deleted").terminating(),
        waiting("unscheduled").node(""),
        pod("orphan").phase("Pending"),
        waiting("of-a-job").set(&["metadata", "ownerReferences"], json!([job])),
    ] {
        leave(&rejected, &pod, NOW);
    }
    assert!(rejected.owners().is_empty());
    rejected.pod_changed::<Set>(&Change::Added(&waiting("new").build()), NOW);
    assert!(rejected.owners().is_empty());
    for name in ["a", "b", "c", "d", "e"] {
        leave(&rejected, &waiting(name), NOW);
    }
    assert_eq!(ended(&rejected, &web("a"), NOW), "a,b,c,d", "a few of many are enough");
    assert_eq!(ended(&rejected, &web("a"), later(60)), "", "they are not worth a request any more");
}

#[test]
fn what_was_read_is_not_read_again_and_a_delay_saves_reads() {
    let (rejected, owner) = (Rejected::default(), web("a"));
    assert_eq!(note(&rejected, &owner, 3, NOW), None);
    assert_eq!(ended(&rejected, &owner, NOW), "");
    assert!(note(&rejected, &owner, 1, NOW).is_some());
    leave(&rejected, &waiting("b"), NOW);
    assert_eq!(ended(&rejected, &owner, NOW), "", "its rejection would change nothing");
    assert_eq!(ended(&rejected, &owner, later(1)), "b");
    assert_eq!(note(&rejected, &owner, 1, NOW), None, "the back-off has begun before");
}

#[test]
fn another_template_begins_anew_and_pods_from_before_it_do_not_count() {
    let (rejected, old, new) = (Rejected::default(), web("a"), web("b"));
    rejected.settle(&*old, &[], NOW);
    assert!(note(&rejected, &old, 9, NOW).is_some());
    let waits = |owner: &Set| rejected.of(owner, &[], NOW).0.wait(NOW).is_some();
    // A look that changes nothing, too.
    rejected.settle(&*old, &[], NOW);
    assert_eq!((waits(&old), waits(&new)), (true, false));
    rejected.settle(&*new, &[], NOW);
    assert_eq!((waits(&new), note(&rejected, &new, 9, ago(1)), waits(&new)), (false, None, false));
    assert!(note(&rejected, &new, 9, later(1)).is_some());
}

#[test]
fn nothing_is_kept_of_an_owner_that_is_gone_or_whose_pods_run() {
    let (rejected, owner) = (Rejected::default(), web("a"));
    note(&rejected, &owner, 9, NOW);
    rejected.settle(&*owner, &[waiting("older").phase("Running").build()], later(2));
    assert_eq!(rejected.owners().len(), 1, "it may run on another node");
    rejected.settle(&*owner, &[pod("foreign").created(later(1)).build()], later(2));
    assert_eq!(rejected.owners().len(), 1);
    rejected.settle(&*owner, &[waiting("newer").phase("Running").created(later(1)).build()], later(2));
    assert!(rejected.owners().is_empty());
    note(&rejected, &owner, 9, NOW);
    rejected.settle(&*owner, &[], later(60));
    assert!(rejected.owners().is_empty());
    leave(&rejected, &waiting("a"), NOW);
    rejected.owner_changed(&Change::Deleted(&owner));
    assert!(rejected.owners().is_empty());
}

#[test]
fn times_that_were_noted_before_the_clock_was_set_back_are_over() {
    let (rejected, old, new, back) = (Rejected::default(), web("a"), web("b"), ago(8 * 3600));
    leave(&rejected, &waiting("a"), NOW);
    assert_eq!((ended(&rejected, &old, NOW), ended(&rejected, &old, back)), ("a".to_owned(), String::new()));
    rejected.settle(&*old, &[], NOW);
    rejected.settle(&*new, &[], NOW);
    let (template, reason) = (Text::default(), Text::new("OutOfcpu"));
    let one = Rejection { template, reason, created: Some(Time::of(back)) };
    assert!(rejected.note(&*new, &[], vec![one; 4], back).is_some(), "the edit was in the future");
    rejected.settle(&*new, &[], ago(7 * 3600));
    assert!(rejected.owners().is_empty());
}

#[test]
fn a_pod_that_has_ended_says_whether_it_was_rejected() {
    let read = |pod: ObjectBuilder| pod.build::<EndedPod>().rejection.clone();
    let failed = || pod("a").phase("Failed").set(&["status", "reason"], "OutOfcpu");
    assert_eq!(read(failed()), Some(Text::new("OutOfcpu")));
    assert_eq!(read(failed().set(&["status", "containerStatuses"], json!([]))), Some(Text::new("OutOfcpu")));
    assert_eq!(read(failed().restarts(0)), None);
    assert_eq!(read(failed().set(&["status", "initContainerStatuses"], json!([{ "name": "setup" }]))), None);
    assert_eq!(read(pod("a").phase("Failed")), None);
    assert_eq!(read(pod("a")), None);
}
