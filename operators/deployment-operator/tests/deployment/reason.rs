//! Why a plan is what it is, as programs read it.

use deployment_operator::observe::Observed;
use deployment_operator::plan::live_read::plan_live_read;
use serde_json::{Value, json};
use shared::working::decisions::stage;

use crate::builders::*;

#[track_caller]
fn check_reason(observed: &Observed, expected: impl Into<Value>) {
    assert_eq!(stage(&planned(observed)).reason, expected.into());
}

/// Why the ReplicaSets of a plan change.
#[track_caller]
fn check_whys(observed: &Observed, expected: impl Into<Value>) {
    let whys: Vec<_> = updates(&planned(observed)).into_iter().map(|update| update.why).collect();
    assert_eq!(serde_json::to_value(whys).unwrap(), expected.into());
}

#[test]
fn a_rollout_says_how_far_it_is() {
    let sets = [set("v1", 8).available(7), set("v2", 5).available(1)];
    let ten = deployment("v2", 10).rolling(3, "20%");
    let rollout = json!({ "wanted": 10, "updated": 5, "updatedAvailable": 1, "old": 8, "available": 8,
        "minAvailable": 8, "maxReplicas": 13 });
    check_reason(&ten.with(&sets), json!({ "rollingUpdate": rollout }));
    check_reason(&ten.clone().paused().with(&sets), json!({ "paused": rollout }));
    check_reason(&ten.with(&[set("v2", 10)]), json!({ "complete": { "replicas": 10 } }));
    let recreated = json!({ "wanted": 3, "updated": 3, "updatedAvailable": 2, "old": 0, "available": 2,
        "minAvailable": 3, "maxReplicas": 3 });
    check_reason(&deployment("v2", 3).recreate().with(&[set("v2", 3).available(2)]), json!({ "recreate": recreated }));
}

#[test]
fn a_plan_without_a_rollout_says_why() {
    let (one, sets) = (deployment("v1", 1), [set("v1", 1)]);
    check_reason(&one.clone().being_deleted().with(&sets), json!("beingDeleted"));
    check_reason(&one.clone().spec("selector", json!({})).with(&sets), json!("selectsEverything"));
    let odd = json!({ "matchExpressions": [{ "key": "app", "operator": "Odd" }] });
    let error = "\"Odd\" is not a valid label selector operator";
    check_reason(&one.clone().spec("selector", odd).with(&sets), json!({ "invalidSelector": { "error": error } }));
    check_reason(&one.clone().strategy("Odd").with(&sets), json!({ "unknownStrategy": { "strategy": "Odd" } }));
    let back = one.annotate("deprecated.deployment.rollback.to", "7").with(&sets);
    check_reason(&back, json!({ "rollback": { "revision": 7 } }));
    let grown = deployment("v1", 5).with(&[set("v1", 3).sized_for(3, 3)]);
    check_reason(&grown, json!({ "scaling": { "wanted": 5 } }));
}

#[test]
fn pods_of_old_sets_are_waited_for_by_name() {
    let recreate = deployment("v3", 3).recreate();
    let terminating = set("v1", 0).status("terminatingReplicas", 1);
    let sets = [terminating, set("v2", 0), set("v3", 0)];
    check_reason(&recreate.with(&sets), json!({ "waitingForOldPods": { "replicaSets": ["web-v1"] } }));
    // The new one has its size already.
    let sets = [sets[0].clone(), set("v3", 3)];
    check(&recreate.with(&sets), "complete; status: rollout");

    let silent = set("v2", 0).status("terminatingReplicas", Value::Null);
    let look = plan_live_read(&recreate.with(&[silent, set("v3", 0)]), now()).unwrap();
    let look = stage(&look);
    assert_eq!(look.text, "list pods (no status tells whether pods are left of web-v2)");
    assert_eq!(look.reason, json!({ "oldPods": { "replicaSets": ["web-v2"] } }));
}

#[test]
fn a_change_of_a_set_says_by_which_numbers() {
    let ten = deployment("v2", 10).rolling(2, 2);
    check_whys(
        &ten.with(&[set("v1", 10), set("v2", 0)]),
        json!([{ "roomForSurge": { "total": 10, "maxReplicas": 12 } }]),
    );
    check_whys(
        &ten.with(&[set("v1", 10).available(9), set("v2", 2)]),
        json!([
            { "unavailable": { "unavailable": 1, "room": 4 } },
            { "enoughAvailable": { "available": 11, "minAvailable": 8 } },
        ]),
    );
    check_whys(&ten.with(&[set("v2", 11)]), json!([{ "tooLarge": { "wanted": 10 } }]));
    let grown = [set("v1", 5).sized_for(8, 10), set("v2", 5).sized_for(8, 10)];
    let shared = json!({ "inProportion": { "change": 2 } });
    check_whys(&ten.with(&grown), json!([shared, shared]));
    check_whys(&ten.clone().paused().with(&[set("v2", 8)]), json!([{ "onlyOne": { "wanted": 10 } }]));
    check_whys(&ten.paused().with(&[set("v1", 3), set("v2", 10)]), json!([{ "newHasAll": { "available": 10 } }]));
    let recreate = deployment("v2", 3).recreate();
    check_whys(&recreate.with(&[set("v1", 3), set("v2", 0)]), json!(["recreated"]));
    check_whys(&recreate.with(&[set("v1", 0), set("v2", 0)]), json!([{ "noOldPod": { "wanted": 3 } }]));
}
