//! Which evictions a user's taint explains, and which only the health of the node: those wait for the brake.

use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder, object};
use taint_eviction_operator::memory::Pending;
use taint_eviction_operator::observe::Observed;
use taint_eviction_operator::plan::{Eviction, Plan, Step, plan};

use crate::fixtures::{after, observed, pod};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const OF_USER: &str = "example.com/gone";

fn tolerates(taint: &str, seconds: Option<i64>) -> Value {
    json!({ "key": taint, "operator": "Exists", "tolerationSeconds": seconds })
}

fn tainted(taints: &[&str]) -> ObjectBuilder {
    let taints: Vec<Value> = taints.iter().map(|key| json!({ "key": key, "effect": "NoExecute" })).collect();
    object("v1", "Node", "node1").namespace("").set(&["spec", "taints"], taints)
}

/// What is pending after this plan.
fn noted(plan: &Plan) -> Option<Pending> {
    match &plan.step {
        Step::Start { pending, .. } => Some(*pending),
        Step::Evict(Eviction { pod, due, users, .. }) => {
            Some(Pending { uid: pod.metadata.uid, due: *due, users: *users, is_announced: false })
        }
        Step::Keep | Step::Wait { .. } => None,
    }
}

/// Whether a user's change explains that a pod goes, so many seconds after its node got these taints.
#[track_caller]
fn check(taints: &[&str], tolerations: &[Value], seconds: i64, expected: bool) {
    let first = observed(&pod(tolerations), Some(&tainted(taints)));
    let pending = noted(&plan(&first, NOW));
    let plan = plan(&Observed { pending, ..first }, after(seconds));
    let Step::Evict(eviction) = &plan.step else { panic!("{plan}") };
    assert_eq!((eviction.is_explained, plan.cancel), (expected, false), "{plan}");
}

#[test]
fn a_users_taint_explains_an_eviction_only_if_it_would_end_the_pod_by_now() {
    let both = [UNREACHABLE, OF_USER];
    let of_user = |seconds| tolerates(OF_USER, seconds);
    let of_health = |seconds| tolerates(UNREACHABLE, seconds);
    check(&[OF_USER], &[], 0, true);
    check(&[UNREACHABLE], &[], 0, false);
    check(&both, &[], 0, true);
    check(&both, &[of_health(None)], 0, true);
    check(&both, &[of_user(None)], 600, false);
    check(&both, &[of_user(Some(5))], 4, false);
    check(&both, &[of_user(Some(5))], 5, true);
    check(&both, &[of_user(None), of_health(Some(5))], 60, false);
    check(&both, &[of_user(Some(60)), of_health(Some(5))], 5, false);
    check(&both, &[of_user(Some(60)), of_health(Some(5))], 60, true);
    check(&both, &[of_user(Some(5)), of_health(Some(60))], 5, true);
    check(&both, &[of_user(Some(5)), of_health(Some(5))], 5, true);
    check(&both, &[of_user(Some(0)), of_health(Some(-5))], 0, true);
}

#[test]
fn a_users_taint_that_comes_later_explains_an_eviction_later() {
    let tolerations = [tolerates(OF_USER, Some(60)), tolerates(UNREACHABLE, Some(300))];
    let pod = pod(&tolerations);
    let waiting = observed(&pod, Some(&tainted(&[UNREACHABLE])));
    let pending = noted(&plan(&waiting, NOW));
    let both = Observed { pending, ..observed(&pod, Some(&tainted(&[UNREACHABLE, OF_USER]))) };
    let joined = plan(&both, after(270));
    assert!(joined.is_news(), "{joined}");
    let both = Observed { pending: noted(&joined), ..both };
    assert!(plan(&both, after(300)).is_unexplained());
    assert!(!plan(&both, after(330)).is_unexplained());
}
