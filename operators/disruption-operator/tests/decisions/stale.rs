//! Stale conditions DisruptionTarget, and what is written then.

use disruption_operator::objects::Pod;
use disruption_operator::observe::search::Search;
use disruption_operator::observe::stale::StalePod;
use disruption_operator::plan::stale::{cleared_target, plan_search, plan_stale, stale_in};
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder, ago};
use shared::working::decisions::stage;

use crate::fixtures::view;

/// A pod with a condition that changed this many seconds ago.
fn target(status: &str, reason: &str, seconds: i64) -> ObjectBuilder {
    let since = ago(seconds).to_string();
    let condition =
        json!({ "type": "DisruptionTarget", "status": status, "reason": reason, "lastTransitionTime": since });
    shared::testing::pod("foo").set(&["status", "conditions"], json!([condition]))
}

fn stale(seconds: i64) -> ObjectBuilder {
    target("True", "EvictionByEvictionAPI", seconds)
}

#[track_caller]
fn check(pod: &ObjectBuilder, expected: &str) {
    let pod = view::<Pod>(pod);
    let decided = plan_stale(&StalePod { pod: pod.clone() }, NOW);
    assert_eq!(decided.to_string(), expected);
    // A change leads to a sync exactly if there is something to do, now or later.
    assert_eq!(stale_in(&pod, NOW).is_some(), !expected.starts_with("keep"), "{expected}");
}

/// Upstream: `TestStalePodDisruption`.
#[test]
fn a_condition_that_nothing_followed_for_two_minutes_is_taken_back() {
    check(&stale(121), "reset the condition (not disrupted since 2026-01-01T11:57:59Z)");
    check(&stale(120), "reset the condition (not disrupted since 2026-01-01T11:58:00Z)");
    check(&stale(119), "wait 1s (may be disrupted until 2026-01-01T12:00:01Z)");
    check(&stale(121).terminating(), "keep (being deleted)");
    check(&stale(121).phase("Failed"), "keep (has ended)");
    check(&stale(121).phase("Succeeded"), "keep (has ended)");
    check(&shared::testing::pod("foo"), "keep (no condition DisruptionTarget)");
    check(&target("False", "", 121), "keep (no condition DisruptionTarget)");
    check(&target("True", "TerminationByKubelet", 121), "keep (no condition DisruptionTarget)");
    let timeless = shared::testing::pod("foo")
        .set(&["status", "conditions"], json!([{ "type": "DisruptionTarget", "status": "True" }]));
    check(&timeless, "reset the condition (not disrupted since an unknown time)");
}

#[test]
fn nothing_of_the_condition_is_left_but_that_it_is_false() {
    let patch = cleared_target(3, NOW);
    let condition = &patch["status"]["conditions"][0];
    let expected = json!({
        "type": "DisruptionTarget", "status": "False", "observedGeneration": 3, "lastTransitionTime": NOW.to_string(),
        "lastProbeTime": null, "reason": null, "message": null,
    });
    assert_eq!(*condition, expected);
}

#[test]
fn a_search_has_those_looked_at_that_are_about_to_be_ended() {
    let named = |pod: ObjectBuilder, name: &str| pod.set(&["metadata", "name"], name);
    let pods = [named(stale(60), "b"), named(stale(600), "a"), named(stale(0).terminating(), "c")];
    let targets = pods.iter().map(view::<Pod>).collect();
    let found = plan_search(&Search { targets, goes_on: true }, NOW);
    let expected = "check default/a, default/b (about to be disrupted); next page in 100ms";
    assert_eq!(found.to_string(), expected);
    let left: Vec<u64> = found.found.iter().map(|(_, left)| left.as_secs()).collect();
    assert_eq!(left, [0, 60]);
    assert_eq!(stage(&found).reason, json!({ "found": { "pods": 2 } }));
    let last = plan_search(&Search { targets: Vec::new(), goes_on: false }, NOW);
    assert_eq!(last.to_string(), "nothing (no pod is about to be disrupted); next page in 1m30s");
    let reason = |pod: &ObjectBuilder| -> Value { stage(&plan_stale(&StalePod { pod: view(pod) }, NOW)).reason };
    assert_eq!(reason(&stale(119)), json!({ "notStale": { "due": "2026-01-01T12:00:01Z" } }));
    assert_eq!(reason(&stale(121)), json!({ "stale": { "since": "2026-01-01T11:57:59Z" } }));
}
