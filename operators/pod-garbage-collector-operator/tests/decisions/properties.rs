//! Properties of the plans for any pods and nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use pod_garbage_collector_operator::objects::{DeletionReason, Pod};
use pod_garbage_collector_operator::observe::{MissingNode, Observed};
use pod_garbage_collector_operator::plan::{MissingPlan, Plan, plan, plan_bindings, plan_missing};
use proptest::prelude::*;
use shared::api::object::Key;
use shared::testing::{ObjectBuilder, ago, properties};

use crate::fixtures::{bindings, evicted, has_ended, node, not_ready, observed, pod, tainted};

const NODES: [&str; 4] = ["", "well", "tainted", "gone"];

fn nodes() -> [ObjectBuilder; 2] {
    [node("well"), tainted(not_ready(node("tainted")), "NoExecute")]
}

fn any_pods() -> impl Strategy<Value = Vec<ObjectBuilder>> {
    let phase = prop::sample::select(vec!["Pending", "Running", "Succeeded", "Failed", "Unknown", ""]);
    let one = (prop::sample::select(NODES.to_vec()), phase, 0..5_i64, any::<bool>(), any::<bool>());
    proptest::collection::vec(one, 0..20).prop_map(|pods| {
        let build = |(index, (at, phase, age, is_evicted, is_deleted)): (usize, (&str, &str, i64, bool, bool))| {
            let mut built = pod(&format!("pod-{index}"), at, phase).created(ago(age));
            if is_evicted {
                built = evicted(built);
            }
            if is_deleted { built.terminating() } else { built }
        };
        pods.into_iter().enumerate().map(build).collect()
    })
}

fn names(plan: &Plan, reason: DeletionReason) -> BTreeSet<String> {
    let of_reason = plan.delete.iter().filter(|deletion| deletion.reason == reason);
    of_reason.map(|deletion| deletion.pod.metadata.key.to_string()).collect()
}

proptest! {
    #[test]
    fn no_pod_goes_that_has_no_reason(pods in any_pods(), threshold in -2..10_i32) {
        let observed = observed(&pods, &nodes());
        let planned = plan(&observed, threshold);
        let ended: BTreeSet<_> = observed.ended.iter().map(|pod| pod.metadata.uid).collect();
        for deletion in &planned.delete {
            let pod = &deletion.pod;
            let is_deleted = pod.metadata.is_being_deleted();
            let holds = match deletion.reason {
                DeletionReason::Terminated => threshold > 0 && ended.contains(&pod.metadata.uid),
                DeletionReason::OutOfService => is_deleted && pod.node == "tainted",
                DeletionReason::Unscheduled => is_deleted && pod.node.is_empty(),
                DeletionReason::Orphaned => false,
            };
            prop_assert!(holds, "{deletion} of {pod:?}");
        }
        let uids: BTreeSet<_> = planned.delete.iter().map(|deletion| deletion.pod.metadata.uid).collect();
        prop_assert_eq!(uids.len(), planned.delete.len(), "a pod goes twice");
    }

    #[test]
    fn only_a_node_that_is_not_there_is_missing(pods in any_pods()) {
        let is_bound = pods.iter().any(|pod| pod.json()["spec"]["nodeName"] == "gone");
        let missing = plan_bindings(&bindings(&pods, &nodes())).missing;
        let expected = if is_bound { BTreeSet::from(["gone".into()]) } else { BTreeSet::new() };
        prop_assert_eq!(missing, expected);
    }

    #[test]
    fn as_many_ended_pods_stay_as_may(pods in any_pods(), threshold in 1..10_i32) {
        let observed = observed(&pods, &nodes());
        let ended = pods.iter().filter(|pod| has_ended(pod)).count();
        let going = names(&plan(&observed, threshold), DeletionReason::Terminated).len();
        prop_assert_eq!(ended - going, ended.min(usize::try_from(threshold).unwrap()));
    }

    #[test]
    fn after_a_round_the_next_one_finds_nothing(pods in any_pods(), threshold in -2..10_i32) {
        let first = observed(&pods, &nodes());
        let going: BTreeSet<_> = plan(&first, threshold).delete.iter().map(|deletion| deletion.pod.metadata.uid).collect();
        let second = Observed {
            ended: first.ended.iter().filter(|pod| !going.contains(&pod.metadata.uid)).cloned().collect(),
            stuck: first.stuck.iter().filter(|pod| !going.contains(&pod.metadata.uid)).cloned().collect(),
            ..first
        };
        prop_assert_eq!(plan(&second, threshold).delete, []);
    }

    #[test]
    fn the_order_of_the_cache_is_irrelevant(pods in any_pods(), threshold in -2..10_i32) {
        let observed = observed(&pods, &nodes());
        let outcome = |observed: &Observed| {
            let planned = plan(observed, threshold);
            let of = |reason| names(&planned, reason);
            (of(DeletionReason::Terminated), of(DeletionReason::OutOfService), of(DeletionReason::Unscheduled))
        };
        properties::order_is_irrelevant(&observed.ended, |ended| {
            outcome(&Observed { ended: ended.to_vec(), ..observed.clone() })
        });
        properties::order_is_irrelevant(&observed.stuck, |stuck| {
            outcome(&Observed { stuck: stuck.to_vec(), ..observed.clone() })
        });
    }

    #[test]
    fn the_pods_of_a_node_that_is_anywhere_stay(pods in any_pods(), is_cached: bool, exists: bool) {
        let pods: Vec<Arc<Pod>> = pods.iter().map(ObjectBuilder::build).collect();
        let planned = plan_missing(&MissingNode { key: Key::new("", "node"), is_cached, exists, pods: pods.clone() });
        let deleted = matches!(planned, MissingPlan::Delete(_));
        prop_assert_eq!(deleted, !is_cached && !exists && !pods.is_empty());
    }
}
