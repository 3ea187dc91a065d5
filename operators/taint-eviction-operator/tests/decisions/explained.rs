//! Which evictions a user's taint explains, and which only the health of the node: those wait for the brake.

use serde_json::{Value, json};
use shared::testing::{NOW, object};
use taint_eviction_operator::observe::Observed;
use taint_eviction_operator::plan::{Step, plan};

use crate::fixtures::{observed, pending, pod};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const OF_USER: &str = "example.com/gone";

fn tolerates(taint: &str, seconds: Option<i64>) -> Value {
    json!({ "key": taint, "operator": "Exists", "tolerationSeconds": seconds })
}

/// Whether a user's change explains that a pod goes now which had been waited for.
#[track_caller]
fn check(taints: &[&str], tolerations: &[Value], expected: bool) {
    let taints: Vec<Value> = taints.iter().map(|key| json!({ "key": key, "effect": "NoExecute" })).collect();
    let node = object("v1", "Node", "node1").namespace("").set(&["spec", "taints"], taints);
    let pending = Some(pending("pod1", 0, false));
    let plan = plan(&Observed { pending, ..observed(&pod(tolerations), Some(&node)) }, NOW);
    let Step::Evict(eviction) = &plan.step else { panic!("{plan}") };
    assert_eq!(eviction.is_explained, expected, "{plan}");
}

#[test]
fn a_users_taint_explains_an_eviction_only_if_it_would_end_the_pod() {
    check(&[OF_USER], &[], true);
    check(&[UNREACHABLE], &[], false);
    check(&[UNREACHABLE, OF_USER], &[], true);
    check(&[UNREACHABLE, OF_USER], &[tolerates(UNREACHABLE, None)], true);
    check(&[UNREACHABLE, OF_USER], &[tolerates(OF_USER, None)], false);
    check(&[UNREACHABLE, OF_USER], &[tolerates(OF_USER, Some(5))], false);
    check(&[UNREACHABLE, OF_USER], &[tolerates(OF_USER, None), tolerates(UNREACHABLE, Some(5))], false);
    check(&[UNREACHABLE, OF_USER], &[tolerates(OF_USER, Some(60)), tolerates(UNREACHABLE, Some(5))], false);
    check(&[UNREACHABLE, OF_USER], &[tolerates(OF_USER, Some(5)), tolerates(UNREACHABLE, Some(60))], true);
    check(&[UNREACHABLE, OF_USER], &[tolerates(OF_USER, Some(5)), tolerates(UNREACHABLE, Some(5))], true);
}
