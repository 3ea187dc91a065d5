//! The counts, the conditions, and the patch that writes them.

use deployment_operator::objects::DeploymentStatus;
use deployment_operator::observe::Observed;
use deployment_operator::plan::StatusScope;
use deployment_operator::status::{NextStatus, calculate_status};
use serde_json::{Value, json};
use shared::api::condition::{self, Condition};
use shared::api::intern::Text;
use shared::api::time::Time;

use crate::builders::*;

fn counts(observed: &Observed) -> DeploymentStatus {
    calculate_status(observed, StatusScope::Counts, now())
}

fn patch(observed: &Observed, next: DeploymentStatus) -> Option<Value> {
    NextStatus::new(observed, next).map(|next| json!(next.patch))
}

#[test]
fn counts_are_the_sums_of_what_the_sets_say() {
    let sets = [set("v1", 3).status("replicas", 4).available(2), set("v2", 5).status("replicas", 3).available(1)];
    let next = counts(&deployment("v2", 8).status("collisionCount", 2).with(&sets));
    let expected = DeploymentStatus {
        observed_generation: 2,
        replicas: 7,
        updated_replicas: 3,
        ready_replicas: 3,
        available_replicas: 3,
        unavailable_replicas: 5,
        terminating_replicas: Some(0),
        collision_count: Some(2),
        conditions: next.conditions.clone(),
    };
    assert_eq!(next, expected);
    // More are available than wanted while it shrinks.
    assert_eq!(counts(&deployment("v1", 1).with(&[set("v1", 1).available(3)])).unavailable_replicas, 0);
}

#[test]
fn only_other_counts_and_their_times_may_wait() {
    let conditions = json!([{ "type": "Available", "status": "False", "lastUpdateTime": "2026-01-01T00:00:00Z" }]);
    let stored = deployment("v1", 3).counts(3, 3, 1, 1).status("observedGeneration", 2);
    let observed = stored.status("conditions", conditions).with(&[]);
    let may_wait = |change: &dyn Fn(&mut DeploymentStatus)| {
        let mut next = observed.deployment.status.clone();
        change(&mut next);
        NextStatus::new(&observed, next).unwrap().is_in_between
    };
    let available = |status: &mut DeploymentStatus, count| status.available_replicas = count;
    assert!(may_wait(&|status| available(status, 2)));
    assert!(may_wait(&|status| {
        available(status, 2);
        status.conditions[0].last_update_time = Some(Time::from_second(7));
    }));
    assert!(!may_wait(&|status| available(status, 3)), "all are there");
    assert!(!may_wait(&|status| {
        available(status, 2);
        status.observed_generation = 3;
    }));
    assert!(!may_wait(&|status| {
        available(status, 2);
        status.conditions[0].status = Text::new("Other");
    }));
    assert!(!may_wait(&|status| {
        available(status, 2);
        status.conditions.clear();
    }));
    let revised = observed.clone().decided(Some(Text::new("7")), None);
    let next = DeploymentStatus { available_replicas: 2, ..revised.deployment.status.clone() };
    assert!(!NextStatus::new(&revised, next).unwrap().is_in_between, "a revision is told, too");
}

#[test]
fn terminating_pods_are_known_only_if_every_synced_set_says_so() {
    let terminating = |sets: &[ReplicaSet]| counts(&deployment("v1", 1).with(sets)).terminating_replicas;
    let unknown = |version| set(version, 1).status("terminatingReplicas", Value::Null);
    assert_eq!(terminating(&[]), Some(0));
    assert_eq!(terminating(&[set("v1", 1).status("terminatingReplicas", 2), set("v2", 1)]), Some(2));
    assert_eq!(terminating(&[set("v1", 1).status("terminatingReplicas", 2), unknown("v2")]), None);
    assert_eq!(terminating(&[set("v1", 1), unknown("v2").status("observedGeneration", 0)]), Some(0));
    assert_eq!(terminating(&[set("v1", 1).status("terminatingReplicas", 3).status("observedGeneration", 0)]), Some(3));
}

#[test]
fn a_count_that_the_server_drops_is_not_written_again() {
    let alone = |status: &[(&str, Value)]| {
        let deployment = deployment("v1", 1);
        let told = status.iter().fold(deployment, |told, (name, value)| told.status(name, value.clone()));
        counts(&told.with(&[])).terminating_replicas
    };
    let synced = ("observedGeneration", json!(2));
    assert_eq!(alone(&[]), Some(0));
    assert_eq!(alone(std::slice::from_ref(&synced)), None);
    assert_eq!(alone(&[synced, ("terminatingReplicas", json!(3))]), Some(0));
    assert_eq!(alone(&[("observedGeneration", json!(1))]), Some(0));
}

/// Upstream: `TestMaxUnavailable`.
#[test]
fn available_is_what_was_asked_for_without_the_unavailable_ones() {
    let check_available = |deployment: &Deployment, pods: i32, expected: bool| {
        let next = counts(&deployment.with(&[set("v1", 10).available(pods)]));
        let available = condition::find(&next.conditions, "Available").unwrap();
        let (status, reason, message) = if expected {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        assert_eq!((&*available.status, &*available.reason, &*available.message), (status, reason, message));
        assert_eq!(available.last_update_time.unwrap().second(), NOW);
    };
    let ten = |unavailable: Value| deployment("v1", 10).rolling(1, unavailable);
    for (limit, least) in [(json!(5), 5), (json!(10), 0), (json!(20), 0), (json!("50%"), 5), (json!("25%"), 8)] {
        check_available(&ten(limit.clone()), least, true);
        if least > 0 {
            check_available(&ten(limit), least - 1, false);
        }
    }
    check_available(&deployment("v1", 10).recreate(), 9, false);
    check_available(&deployment("v1", 10).recreate(), 10, true);
    check_available(&deployment("v1", 0).rolling(1, 10), 0, true);
}

#[test]
fn a_condition_that_stays_keeps_its_place_and_times() {
    let earlier = json!([
        { "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "in other words",
          "lastUpdateTime": time(5), "lastTransitionTime": time(4) },
        { "type": "Odd", "status": "True" },
    ]);
    let one = deployment("v1", 1).rolling(1, 0).status("conditions", earlier.clone());
    let types = |next: &DeploymentStatus| next.conditions.iter().map(|c| c.type_.to_string()).collect::<Vec<_>>();
    let stays = counts(&one.with(&[set("v1", 1)]));
    assert_eq!(serde_json::to_value(&stays.conditions).unwrap(), earlier);
    let changes = counts(&one.with(&[set("v1", 1).available(0)]));
    assert_eq!(types(&changes), ["Odd", "Available"]);
}

#[test]
fn the_failure_of_the_new_set_comes_before_that_of_others() {
    let failure = |sets: &[ReplicaSet]| {
        let earlier = json!([{ "type": "ReplicaFailure", "status": "Unknown", "reason": "Earlier" }]);
        let observed = deployment("v3", 3).status("conditions", earlier).with(sets);
        let next = calculate_status(&observed, StatusScope::Rollout, now());
        condition::find(&next.conditions, "ReplicaFailure").cloned()
    };
    let reason = |sets: &[ReplicaSet]| failure(sets).map(|failure| failure.reason.to_string());
    assert_eq!(reason(&[set("v1", 1), set("v3", 1)]), None);
    let old = [set("v1", 1), set("v2", 1).failing("Old"), set("v3", 1)];
    assert_eq!(reason(&old), Some("Old".to_owned()));
    let both = [set("v1", 1).failing("Older"), set("v2", 1).failing("Old"), set("v3", 1).failing("New")];
    assert_eq!(reason(&both), Some("New".to_owned()));
    assert_eq!(reason(&both[..2]), Some("Older".to_owned()));
    let failure = failure(&both).unwrap();
    let transition = failure.last_transition_time;
    assert_eq!((transition.unwrap().second(), failure.last_update_time), (50, transition));
}

#[test]
fn a_scaling_sync_leaves_progress_and_failures_alone() {
    let one = deployment("v1", 1).deadline(60).progressing("True", "ReplicaSetUpdated", 1);
    let next = counts(&one.with(&[set("v1", 1).failing("New")]));
    let types: Vec<String> = next.conditions.iter().map(|condition| condition.type_.to_string()).collect();
    assert_eq!(types, ["Progressing", "Available"]);
}

#[test]
fn the_generation_alone_is_observed_where_nothing_else_is_done() {
    let next = |observed: i64| {
        let one = deployment("v1", 1).status("observedGeneration", observed).with(&[]);
        calculate_status(&one, StatusScope::ObservedGeneration, now()).observed_generation
    };
    assert_eq!(next(1), 2);
    assert_eq!(next(3), 3);
}

#[test]
fn the_patch_has_only_what_changes() {
    let one = deployment("v1", 1).counts(1, 0, 1, 1).status("observedGeneration", 2).status("terminatingReplicas", 3);
    let observed = one.with(&[set("v1", 1).status("terminatingReplicas", Value::Null)]);
    let next = counts(&observed);
    let conditions = serde_json::to_value(&next.conditions).unwrap();
    assert_eq!(
        patch(&observed, next).unwrap(),
        json!({
            "metadata": {},
            "status": { "updatedReplicas": 1, "terminatingReplicas": null, "conditions": conditions },
        })
    );
    assert_eq!(patch(&observed, observed.deployment.status.clone()), None);
}

#[test]
fn the_revision_is_written_with_the_status() {
    let observed = deployment("v1", 1).with(&[]).decided(Some(Text::new("4")), None);
    let status = observed.deployment.status.clone();
    assert_eq!(
        patch(&observed, status).unwrap()["metadata"]["annotations"],
        json!({ "deployment.kubernetes.io/revision": "4" })
    );
}

#[test]
fn what_was_decided_on_the_way_is_written_even_if_nothing_else_is() {
    let progressing = Condition::new("Progressing", "False", "ReplicaSetCreateError", "no");
    let observed = deployment("v1", 1).with(&[]).decided(None, Some(progressing.clone())).collided(Some(1));
    let next = calculate_status(&observed, StatusScope::Decided, now());
    let status = &patch(&observed, next).unwrap()["status"];
    assert_eq!(*status, json!({ "collisionCount": 1, "conditions": [progressing] }));
}
