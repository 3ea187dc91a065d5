//! Pauses, progress and the deadline.

use std::time::Duration;

use deployment_operator::objects::DeploymentStatus;
use deployment_operator::plan::StatusScope;
use deployment_operator::plan::progress::{is_complete, is_progressing, is_timed_out, next_check};
use deployment_operator::status::calculate_status;
use shared::api::condition;

use crate::builders::*;

fn counts(replicas: i32, updated_replicas: i32, ready_replicas: i32, available_replicas: i32) -> DeploymentStatus {
    DeploymentStatus { replicas, updated_replicas, ready_replicas, available_replicas, ..DeploymentStatus::default() }
}

#[test]
fn a_pause_and_its_end_become_conditions() {
    let one = deployment("v1", 1).deadline(60);
    let sets = [set("v1", 1)];
    let paused = "paused; Progressing Unknown DeploymentPaused; status: counts";
    check(&one.clone().paused().with(&sets), paused);
    check(&one.clone().paused().progressing("True", "NewReplicaSetAvailable", 1).with(&sets), paused);
    check(&one.clone().paused().progressing("Unknown", "DeploymentPaused", 1).with(&sets), "paused; status: counts");
    check(
        &one.clone().progressing("Unknown", "DeploymentPaused", 1).with(&sets),
        "complete; Progressing Unknown DeploymentResumed; status: rollout",
    );
    check(&one.progressing("Unknown", "DeploymentResumed", 1).with(&sets), "complete; status: rollout");
}

#[test]
fn a_pause_is_not_noted_after_a_timeout_or_without_a_deadline() {
    let paused = deployment("v1", 1).paused();
    let sets = [set("v1", 1)];
    check(&paused.with(&sets), "paused; status: counts");
    check(&paused.clone().deadline(i32::MAX).with(&sets), "paused; status: counts");
    let timed_out = paused.deadline(60).progressing("False", "ProgressDeadlineExceeded", 1);
    check(&timed_out.with(&sets), "paused; status: counts");
}

#[test]
fn a_set_that_is_met_for_the_first_time_starts_the_deadline() {
    let one = deployment("v1", 1).deadline(60);
    check(&one.with(&[set("v1", 1)]), "complete; Progressing True FoundNewReplicaSet; status: rollout");
    // An update of the set itself comes first.
    check(
        &one.annotate("a", "1").with(&[set("v1", 1)]),
        "complete; update web-v1 a=1 (as the deployment says); status: rollout",
    );
}

/// Upstream: `TestDeploymentComplete`.
#[test]
fn complete_is_all_updated_all_available_and_none_left() {
    let five = deployment("v1", 5).with(&[]);
    let observed = |status: DeploymentStatus| DeploymentStatus { observed_generation: 2, ..status };
    for (status, complete) in [
        (counts(5, 5, 5, 4), false),
        (counts(5, 5, 5, 3), false),
        (counts(5, 5, 5, 5), true),
        (counts(5, 4, 5, 5), false),
        (counts(6, 5, 5, 5), false),
        (counts(5, 5, 0, 0), false),
    ] {
        assert_eq!(is_complete(&five, &observed(status.clone())), complete, "{status:?}");
        assert!(!is_complete(&five, &status), "an older generation");
    }
}

/// Upstream: `TestDeploymentProgressing`.
#[test]
fn progress_is_more_of_the_new_or_less_of_the_old() {
    for (before, now, progressing) in [
        (counts(10, 4, 4, 4), counts(10, 6, 4, 4), true),
        (counts(10, 4, 4, 4), counts(10, 4, 4, 4), false),
        (counts(10, 4, 6, 6), counts(8, 4, 6, 6), true),
        (counts(10, 7, 3, 3), counts(10, 6, 3, 3), false),
        (counts(10, 4, 7, 7), counts(8, 8, 5, 5), true),
        (counts(10, 10, 9, 8), counts(10, 10, 10, 8), true),
        (counts(10, 10, 10, 9), counts(10, 10, 10, 10), true),
    ] {
        assert_eq!(is_progressing(&before, &now), progressing, "{before:?} {now:?}");
    }
}

/// Upstream: `TestDeploymentTimedOut`.
#[test]
fn the_deadline_counts_from_the_last_update() {
    let check_timeout = |deadline: Option<i32>, reason: &str, age: i64, expected: bool| {
        let deployment = deployment("v1", 1).spec("progressDeadlineSeconds", deadline);
        let built = deployment.progressing("True", reason, NOW - age).build();
        let timed_out = is_timed_out(&built.spec, &built.status.conditions, now());
        assert_eq!(timed_out, expected, "{deadline:?} {reason} {age}");
    };
    check_timeout(None, "", 11, false);
    check_timeout(Some(i32::MAX), "", 11, false);
    check_timeout(Some(10), "", 11, true);
    check_timeout(Some(10), "", 10, false);
    check_timeout(Some(10), "", 9, false);
    check_timeout(Some(10), "NewReplicaSetAvailable", 1000, false);
    check_timeout(Some(10), "ProgressDeadlineExceeded", 0, true);
    let without_condition = deployment("v1", 1).deadline(10).build();
    assert!(!is_timed_out(&without_condition.spec, &[], now()));
}

/// Upstream: `TestRequeueStuckDeployment`.
#[test]
fn a_rollout_that_can_time_out_is_looked_at_when_it_does() {
    let stuck = |deployment: Deployment, at_second: i64, nanos: i64| {
        let observed = deployment.with(&[]);
        let at = jiff::Timestamp::new(at_second, i32::try_from(nanos).unwrap()).unwrap();
        next_check(&observed, &observed.deployment.status, at)
    };
    let three = deployment("v1", 3).counts(3, 3, 1, 1).status("observedGeneration", 2);
    let since = |reason: &str| three.clone().deadline(60).progressing("True", reason, NOW);
    let seconds = |seconds: u64| Some(Duration::from_secs(seconds));
    assert_eq!(stuck(three.clone(), NOW, 0), None);
    assert_eq!(stuck(three.clone().deadline(60), NOW, 0), None);
    assert_eq!(stuck(since("").deadline(i32::MAX), NOW, 0), None);
    assert_eq!(stuck(since("").counts(3, 3, 3, 3), NOW, 0), None);
    assert_eq!(stuck(since("ProgressDeadlineExceeded"), NOW, 0), None);
    // This one cannot time out either; upstream comes back to it again and again, without end.
    assert_eq!(stuck(since("NewReplicaSetAvailable"), NOW + 1000, 0), None);
    assert_eq!(stuck(since(""), NOW + 30, 0), seconds(31));
    assert_eq!(stuck(since(""), NOW + 59, 0), seconds(2));
    assert_eq!(stuck(since(""), NOW + 59, 1), Some(Duration::new(1, 999_999_999)));
    assert_eq!(stuck(since(""), NOW + 60, 0), seconds(1));
    assert_eq!(stuck(since(""), NOW + 61, 0), seconds(1));
}

mod condition_of_a_rollout {
    use super::*;

    const DEADLINE: i32 = 60;
    /// Long enough ago to time out.
    const EARLIER: i64 = NOW - 100;

    /// Status and reason of the Progressing condition after the sync, and the seconds of its last update and transition.
    #[track_caller]
    fn check_condition(deployment: &Deployment, sets: &[ReplicaSet], expected: Option<(&str, &str, i64, i64)>) {
        let next = calculate_status(&deployment.with(sets), StatusScope::Rollout, now());
        let found = condition::find(&next.conditions, "Progressing").map(|found| {
            let second = |time: Option<shared::api::time::Time>| time.map_or(0, shared::api::time::Time::second);
            let (updated, transitioned) = (second(found.last_update_time), second(found.last_transition_time));
            (found.status.as_str(), found.reason.as_str(), updated, transitioned)
        });
        assert_eq!(found, expected);
    }

    /// Three wanted, with the written counts.
    fn three(replicas: i32, updated: i32, available: i32) -> Deployment {
        deployment("v2", 3).deadline(DEADLINE).counts(replicas, updated, available, available)
    }

    /// An old one on its last pod, and the new one with two of three.
    fn half_way() -> [ReplicaSet; 2] {
        [set("v1", 0).status("replicas", 1).available(1), set("v2", 3).status("replicas", 2).available(2)]
    }

    fn stuck() -> [ReplicaSet; 1] {
        [set("v2", 3).status("replicas", 2).available(2)]
    }

    /// Upstream: `TestSyncRolloutStatus`, "General".
    #[test]
    fn none_without_a_deadline_and_none_estimated_without_a_rollout() {
        let without = three(3, 2, 2).spec("progressDeadlineSeconds", serde_json::Value::Null);
        check_condition(&without.progressing("True", "ReplicaSetUpdated", EARLIER), &half_way(), None);
        let complete = three(3, 3, 3).progressing("True", "NewReplicaSetAvailable", EARLIER);
        check_condition(&complete, &[set("v2", 3)], Some(("True", "NewReplicaSetAvailable", EARLIER, EARLIER)));
        // Pods that come and go later are no rollout.
        check_condition(
            &complete,
            &[set("v2", 3).available(1)],
            Some(("True", "NewReplicaSetAvailable", EARLIER, EARLIER)),
        );
    }

    /// Upstream: `TestSyncRolloutStatus`, `DeploymentProgressing`.
    #[test]
    fn progress_moves_the_update_and_keeps_the_transition() {
        let updated = three(3, 1, 2).progressing("True", "ReplicaSetUpdated", EARLIER);
        check_condition(&updated, &half_way(), Some(("True", "ReplicaSetUpdated", NOW, EARLIER)));
        let timed_out = three(3, 1, 2).progressing("False", "ProgressDeadlineExceeded", EARLIER);
        check_condition(&timed_out, &half_way(), Some(("True", "ReplicaSetUpdated", NOW, NOW)));
        check_condition(&three(3, 1, 2), &half_way(), Some(("True", "ReplicaSetUpdated", NOW, NOW)));
    }

    /// Upstream: `TestSyncRolloutStatus`, `DeploymentComplete`.
    #[test]
    fn completion_is_noted_once() {
        let complete = [set("v2", 3)];
        let updated = three(3, 3, 3).progressing("True", "ReplicaSetUpdated", EARLIER);
        check_condition(&updated, &complete, Some(("True", "NewReplicaSetAvailable", NOW, EARLIER)));
        let timed_out = three(3, 3, 3).progressing("False", "ProgressDeadlineExceeded", EARLIER);
        check_condition(&timed_out, &complete, Some(("True", "NewReplicaSetAvailable", NOW, NOW)));
        check_condition(&three(3, 3, 3), &complete, Some(("True", "NewReplicaSetAvailable", NOW, NOW)));
        // "defend against NPE when newRS=nil"
        let none = three(3, 3, 3).spec("replicas", 0).progressing("True", "ReplicaSetUpdated", EARLIER);
        check_condition(&none, &[set("v1", 0)], Some(("True", "NewReplicaSetAvailable", NOW, EARLIER)));
    }

    /// Upstream: `TestSyncRolloutStatus`, `DeploymentTimedOut`.
    #[test]
    fn standing_still_beyond_the_deadline_is_a_timeout() {
        let updated = three(2, 2, 2).progressing("True", "ReplicaSetUpdated", EARLIER);
        check_condition(&updated, &stuck(), Some(("False", "ProgressDeadlineExceeded", NOW, NOW)));
        let timed_out = three(2, 2, 2).progressing("False", "ProgressDeadlineExceeded", EARLIER);
        check_condition(&timed_out, &stuck(), Some(("False", "ProgressDeadlineExceeded", EARLIER, EARLIER)));
        let recent = three(2, 2, 2).progressing("True", "ReplicaSetUpdated", NOW - 60);
        check_condition(&recent, &stuck(), Some(("True", "ReplicaSetUpdated", NOW - 60, NOW - 60)));
        check_condition(&three(2, 2, 2), &stuck(), None);
    }

    #[test]
    fn messages_name_the_new_set_or_else_the_deployment() {
        let message = |deployment: &Deployment, sets: &[ReplicaSet]| {
            let next = calculate_status(&deployment.with(sets), StatusScope::Rollout, now());
            condition::find(&next.conditions, "Progressing").unwrap().message.to_string()
        };
        assert_eq!(message(&three(3, 3, 3), &[set("v2", 3)]), "ReplicaSet \"web-v2\" has successfully progressed.");
        assert_eq!(message(&three(3, 1, 2), &half_way()), "ReplicaSet \"web-v2\" is progressing.");
        let late = three(2, 2, 2).progressing("True", "ReplicaSetUpdated", EARLIER);
        assert_eq!(message(&late, &stuck()), "ReplicaSet \"web-v2\" has timed out progressing.");
        let none = three(0, 0, 0).spec("replicas", 0);
        assert_eq!(message(&none, &[set("v1", 0)]), "Deployment \"web\" has successfully progressed.");
    }
}
