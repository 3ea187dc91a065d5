//! Rules for all pods, nodes and pending deletions.

use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::pod::disruption::Disruption;
use shared::testing::{NOW, properties};
use taint_eviction_operator::memory::Pending;
use taint_eviction_operator::objects::{Node, Pod};
use taint_eviction_operator::observe::Observed;
use taint_eviction_operator::plan::{Eviction, Plan, Step, plan};

use crate::fixtures::{after, marked, node, observed, pending, pod};

fn any_toleration() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec!["", "testTaint1", "testTaint2", "testTaint3"]);
    let seconds = prop::option::of(-3..100_i64);
    (key, any::<bool>(), seconds).prop_map(|(key, exists, seconds)| {
        let (operator, value) = if exists { ("Exists", "") } else { ("Equal", "test1") };
        json!({ "key": key, "operator": operator, "value": value, "tolerationSeconds": seconds })
    })
}

fn any_pending() -> impl Strategy<Value = Option<Pending>> {
    let one = (prop::sample::select(vec!["pod1", "another"]), -50..50_i64, any::<bool>());
    prop::option::of(one).prop_map(|one| {
        let (name, seconds, is_announced) = one?;
        // A deletion that was announced was due.
        Some(pending(name, if is_announced { -seconds.abs() } else { seconds }, is_announced))
    })
}

fn any_observed() -> impl Strategy<Value = Observed> {
    let tolerations = prop::collection::vec(any_toleration(), 0..4);
    let taints = prop::option::of(prop::sample::subsequence(vec![1_u32, 2, 3], 0..=3));
    (tolerations, taints, any_pending(), any::<bool>(), any::<bool>()).prop_map(
        |(tolerations, taints, pending, is_deleted, is_marked)| {
            let mut built = pod(&tolerations);
            if is_deleted {
                built = built.terminating();
            }
            if is_marked {
                built = marked(built, "True", "DeletionByTaintManager");
            }
            let node = taints.map(|taints| node(&taints));
            Observed { pending, ..observed(&built, node.as_ref()) }
        },
    )
}

/// The observation after the plan was executed, while the pod still ends.
fn applied(observed: &Observed, plan: Plan) -> Observed {
    let Plan { cancel: _, step, reason: _ } = plan;
    match step {
        Step::Keep => Observed { pending: None, ..observed.clone() },
        Step::Start { pending, node: _, left: _ } => Observed { pending: Some(pending), ..observed.clone() },
        Step::Wait { left: _ } => observed.clone(),
        Step::Evict(Eviction { pod, due: _, users: _, announce: _, delete: _, is_explained: _ }) => {
            let Pod { metadata, node, tolerations, disruption: _ } = &*pod;
            let mut metadata = metadata.clone();
            metadata.deletion = Some(shared::api::time::Time::of(NOW));
            let (node, tolerations) = (node.clone(), Arc::clone(tolerations));
            let ends = Pod { metadata, node, tolerations, disruption: Disruption::Marked };
            Observed { pod: Some(Arc::new(ends)), pending: None, ..observed.clone() }
        }
    }
}

fn goes(planned: &Plan) -> bool {
    matches!(planned.step, Step::Evict(_))
}

proptest! {
    #[test]
    fn after_applying_there_is_nothing_new_to_decide(observed in any_observed()) {
        let planned = plan(&observed, NOW);
        let then = plan(&applied(&observed, planned), NOW);
        prop_assert!(!then.is_news(), "{}", then);
    }

    #[test]
    fn no_pod_goes_that_tolerates_its_node_for_longer(observed in any_observed()) {
        let planned = plan(&observed, NOW);
        let taints = observed.node.as_ref().map_or(0, |node| node.taints.len());
        let uid = observed.pod.as_ref().map(|pod| pod.metadata.uid);
        let own = observed.pending.filter(|pending| Some(pending.uid) == uid);
        let is_due = own.is_some_and(|own| own.due <= NOW);
        prop_assert!(!goes(&planned) || taints > 0 || is_due, "{}", planned);
        if let Step::Start { pending, .. } = &planned.step {
            let is_new = own.is_none_or(|own| own.due == pending.due && own.users != pending.users);
            prop_assert!(is_new && pending.due > NOW && pending.due <= after(100), "{}", planned);
        }
        if let Step::Evict(Eviction { pod, due, users: _, announce, delete, is_explained }) = &planned.step {
            prop_assert!(Some(pod) == observed.pod.as_ref() && *due <= NOW);
            prop_assert_eq!(*announce, own.is_none_or(|own| !own.is_announced));
            prop_assert_eq!(*delete, !pod.metadata.is_being_deleted());
            prop_assert!(*is_explained, "no taint here is of health");
        }
    }

    #[test]
    fn a_pod_that_waits_goes_when_its_time_is_over_and_not_before(observed in any_observed(), seconds in 1..200_i64) {
        let planned = plan(&observed, NOW);
        let Step::Start { pending, .. } = &planned.step else { return Ok(()) };
        let later = Observed { pending: Some(*pending), ..observed.clone() };
        let now: Timestamp = after(seconds);
        prop_assert_eq!(goes(&plan(&later, now)), now >= pending.due);
    }

    #[test]
    fn the_order_of_taints_is_irrelevant(observed in any_observed()) {
        let Some(node) = observed.node.clone() else { return Ok(()) };
        properties::order_is_irrelevant(&node.taints, |taints| {
            let node = Arc::new(Node { metadata: node.metadata.clone(), taints: taints.into() });
            let Plan { cancel, step, reason: _ } = plan(&Observed { node: Some(node), ..observed.clone() }, NOW);
            (cancel, step)
        });
    }
}
