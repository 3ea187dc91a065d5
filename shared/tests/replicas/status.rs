//! The status of an owner. Rows name upstream's tests where they are theirs
//! (`pkg/controller/replicaset/replica_set_utils_test.go`).

use std::io::Error;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shared::api::object::Object;
use shared::api::pod::PodView;
use shared::controllers::replicas::ReplicaOwner;
use shared::controllers::replicas::apply::Outcome;
use shared::controllers::replicas::observe::Observed;
use shared::controllers::replicas::pod::Pod;
use shared::controllers::replicas::status::{next_check, next_status};
use shared::controllers::replicas::sync::requeue;
use shared::testing::{NOW, ObjectBuilder, ago};
use shared::working::worker::Requeue;

use super::fixtures::{self, foreign, observed, orphan, pod, ready_pods, rejections, relabelled, web};
use crate::Owner;

/// The outcome of a sync that claimed all active pods.
pub(crate) fn outcome(pods: &[ObjectBuilder], failure: Option<&str>) -> Outcome {
    let claimed = pods.iter().map(ObjectBuilder::build).filter(|pod: &Arc<Pod>| pod.is_active());
    Outcome {
        claimed: claimed.collect(),
        failure: failure.map(|text| Error::other(text.to_owned()).into()),
        error: None,
    }
}

/// The status as it would be written.
fn status(web: &ObjectBuilder, pods: &[ObjectBuilder], failure: Option<&str>) -> Value {
    let status = next_status(&observed(web, pods), &outcome(pods, failure), NOW).unwrap();
    serde_json::to_value(&status).unwrap()
}

/// `counts`: replicas, fully labeled, ready, available, and terminating if the kind has that count.
#[track_caller]
fn check_counts(web: &ObjectBuilder, pods: &[ObjectBuilder], counts: [i32; 5]) {
    let fields = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas"];
    let status = status(web, pods, None);
    let mut counts = counts.map(Value::from);
    if !Owner::COUNTS_TERMINATING {
        counts[4] = Value::Null;
    }
    assert_eq!(fields.map(|field| status[field].clone()), counts);
}

/// `TestCalculateStatus`.
#[test]
fn counts() {
    let half_labelled = |name: &str| pod(name).ready().label("tier", "back");
    let lasting = web(1).set(&["spec", "minReadySeconds"], 3600);
    check_counts(&web(2), &ready_pods(1), [1, 1, 1, 1, 0]);
    check_counts(&web(2), &ready_pods(2), [2, 2, 2, 2, 0]);
    check_counts(&web(1), &[half_labelled("a")], [1, 0, 1, 1, 0]);
    check_counts(&web(1), &[half_labelled("a"), half_labelled("b")], [2, 0, 2, 2, 0]);
    check_counts(&web(1), &[half_labelled("a"), pod("b").ready()], [2, 1, 2, 2, 0]);
    check_counts(&web(2), &[pod("a").phase("Pending")], [1, 1, 0, 0, 0]);
    check_counts(&lasting, &[pod("a").ready()], [1, 1, 1, 0, 0]);
    check_counts(&lasting, &[pod("a").ready_since(ago(3600))], [1, 1, 1, 1, 0]);
    check_counts(&lasting, &[pod("a").ready_since(ago(7200))], [1, 1, 1, 1, 0]);
    check_counts(&web(2), &[pod("a").ready(), pod("b").terminating(), pod("c").ready().terminating()], [1, 1, 1, 1, 2]);
}

#[test]
fn only_own_matching_pods_that_have_not_ended_count_as_terminating() {
    let pods = [
        relabelled("a").terminating(),
        pod("b").phase("Failed").terminating(),
        foreign("c").terminating(),
        orphan("d").terminating(),
        pod("e").terminating(),
    ];
    check_counts(&web(1), &pods, [0, 0, 0, 0, 1]);
}

#[track_caller]
fn check_conditions(stored: Value, replicas: i32, failure: Option<&str>, expected: &Value) {
    let web = web(replicas).set(&["status", "conditions"], stored);
    assert_eq!(status(&web, &ready_pods(2), failure)["conditions"], *expected);
}

/// `TestCalculateStatusConditions`.
#[test]
fn a_failure_is_kept_from_its_first_occurrence_until_nothing_fails() {
    let condition = |reason: &str, message: &str, at: jiff::Timestamp| json!([{ "type": "ReplicaFailure", "status": "True", "lastTransitionTime": at.to_string(), "reason": reason, "message": message }]);
    check_conditions(json!(null), 3, Some("quota"), &condition("FailedCreate", "quota", NOW));
    check_conditions(json!(null), 1, Some("webhook"), &condition("FailedDelete", "webhook", NOW));
    check_conditions(json!(null), 3, None, &json!(null));
    let first = condition("FailedCreate", "first", ago(60));
    check_conditions(first.clone(), 1, Some("second"), &first);
    check_conditions(first, 3, None, &json!(null));
}

#[test]
fn conditions_of_others_are_kept_as_they_are_served() {
    let theirs = r#"{"type":"Theirs","status":"True","fieldOfTomorrow":{"b":1.0,"a":[]}}"#;
    let json =
        web(1).set(&["status", "conditions"], json!(["THEIRS"])).json().to_string().replace("\"THEIRS\"", theirs);
    let web: Owner = serde_json::from_str(&json).unwrap();
    let mut observed = observed(&fixtures::web(1), &[]);
    observed.owner = web.into();
    let with_failure = next_status(&observed, &outcome(&[], Some("quota")), NOW).unwrap();
    let written = serde_json::to_string(&with_failure.conditions).unwrap();
    let failure = format!(
        r#"{{"type":"ReplicaFailure","status":"True","lastTransitionTime":"{NOW}","reason":"FailedCreate","message":"quota"}}"#
    );
    assert_eq!(written, format!("[{theirs},{failure}]"));
    let without = next_status(&observed, &outcome(&[], None), NOW).unwrap();
    assert_eq!(serde_json::to_string(&without.conditions).unwrap(), format!("[{theirs}]"));
}

#[test]
fn a_settled_status_is_not_written_again() {
    let web = web(2).generation(7);
    let pods = ready_pods(2);
    let next = next_status(&observed(&web, &pods), &outcome(&pods, None), NOW).unwrap();
    assert_eq!(next.observed_generation, 7);
    // As the apiserver serves it: without nulls.
    let served = serde_json::to_string(&next).unwrap().replace(r#","conditions":null"#, "");
    let settled = web.clone().set(&["status"], serde_json::from_str::<Value>(&served).unwrap());
    let observed = observed(&settled, &pods);
    assert_eq!(&next_status(&observed, &outcome(&pods, None), NOW).unwrap(), &observed.owner.status);
    // Another generation is news even where nothing else is.
    let edited = fixtures::observed(&settled.generation(8), &pods);
    assert_ne!(next_status(&edited, &outcome(&pods, None), NOW).unwrap(), edited.owner.status);
}

#[test]
fn the_status_names_every_field_that_is_ours() {
    let mut expected = json!({
        "replicas": 0, "fullyLabeledReplicas": 0, "readyReplicas": 0, "availableReplicas": 0,
        "observedGeneration": 1, "conditions": null,
    });
    if Owner::COUNTS_TERMINATING {
        expected["terminatingReplicas"] = json!(0);
    }
    assert_eq!(status(&web(3), &[], None), expected);
}

#[track_caller]
fn check_requeue(min_ready_seconds: i32, pods: &[ObjectBuilder], expected: Requeue) {
    let web = web(4).set(&["spec", "minReadySeconds"], min_ready_seconds);
    let (observed, outcome) = (observed(&web, pods), outcome(pods, None));
    let status = next_status(&observed, &outcome, NOW);
    assert_eq!(requeue(&observed, outcome, status.as_ref(), None, NOW).unwrap(), expected);
}

/// `TestReplicaSetAvailabilityCheck`, and `TestFindMinNextPodAvailability*` of `pkg/controller/controller_utils_test.go`.
#[test]
fn the_next_look_is_when_the_next_pod_becomes_available() {
    let ready = |name: &str, seconds: i64| pod(name).ready_since(ago(seconds));
    let after = |seconds: u64| Requeue::After(Duration::from_secs(seconds), "minReadySeconds of a pod");
    check_requeue(5, &[pod("a").phase("Pending"), ready("b", 0), ready("c", 2), ready("d", 4)], after(1));
    check_requeue(10, &[pod("a"), ready("b", 2), ready("c", 0), ready("d", 4), pod("e")], after(6));
    check_requeue(10, &[pod("a"), ready("b", 15), ready("c", 11), ready("d", 10)], Requeue::Done);
    check_requeue(10, &[pod("a")], Requeue::Done);
    check_requeue(0, &[ready("a", 0)], Requeue::Done);
    check_requeue(10, &[], Requeue::Done);
    // Nobody knows since when it is ready.
    let condition = json!([{ "type": "Ready", "status": "True" }]);
    check_requeue(10, &[pod("a").set(&["status", "conditions"], condition)], after(10));
}

#[test]
fn the_next_look_is_when_more_replacements_of_rejected_pods_may_be_made() {
    let pods = ready_pods(1);
    let look = |replicas: i32| {
        let observed = Observed { rejections: rejections(4, NOW), ..observed(&web(replicas), &pods) };
        requeue(&observed, outcome(&pods, None), None, None, NOW).unwrap()
    };
    assert_eq!(look(2), Requeue::After(Duration::from_secs(1), "replacements of rejected pods"));
    assert_eq!(look(1), Requeue::Done);
}

#[test]
fn a_check_is_due_at_an_instant() {
    let pods = [pod("a").ready_since(ago(4))];
    let observed = observed(&web(1).set(&["spec", "minReadySeconds"], 10), &pods);
    let outcome = outcome(&pods, None);
    let status = next_status(&observed, &outcome, NOW).unwrap();
    let due = next_check(&observed.owner.spec, &outcome, &status, NOW).unwrap();
    assert_eq!(due.second() - NOW.as_second(), 6);
    assert_eq!(observed.owner.meta().name(), "web");
}
