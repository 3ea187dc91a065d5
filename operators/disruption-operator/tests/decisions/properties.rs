//! Properties of all budgets and pods.

use std::collections::BTreeMap;

use disruption_operator::observe::Observed;
use disruption_operator::plan::plan;
use disruption_operator::status::next_status;
use proptest::prelude::*;
use serde_json::Value;
use shared::api::time::Time;
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{NOW, ObjectBuilder, ago};

use crate::fixtures::{budget, observed, outcome, owned, pod, scales, synced, unready, with_status};

const SETS: [&str; 3] = ["", "one", "two"];

fn any_limit() -> impl Strategy<Value = (&'static str, Value)> {
    let field = prop::sample::select(vec!["minAvailable", "maxUnavailable"]);
    let share = (0..=110_i32).prop_map(|percent| Value::from(format!("{percent}%")));
    (field, prop_oneof![(0..8_i32).prop_map(Value::from), share])
}

/// Pods of two owners or of none, ready or not, being deleted or not; and evictions of some of them and of others.
fn any_state() -> impl Strategy<Value = (ObjectBuilder, Observed)> {
    let one = (prop::sample::select(SETS.to_vec()), any::<bool>(), prop::bool::weighted(0.2));
    let pods = prop::collection::vec(one, 0..8);
    let evictions = prop::collection::btree_map(0..10_usize, 0..200_i64, 0..4);
    (any_limit(), pods, evictions, 0..6_i32, 0..6_i32).prop_map(|((field, limit), pods, evictions, one, two)| {
        let eviction = |(at, seconds): (&usize, &i64)| (format!("pod-{at}"), Value::from(ago(*seconds).to_string()));
        let evictions: Value = evictions.iter().map(eviction).collect();
        let budget = budget(field, limit).set(&["status", "disruptedPods"], evictions);
        let built = |(at, (set, is_ready, is_deleted)): (usize, (&str, bool, bool))| {
            let name = format!("pod-{at}");
            let pod = if is_ready { pod(&name) } else { unready(&name) };
            let pod = if set.is_empty() { pod } else { owned(pod, "apps/v1", "ReplicaSet", set) };
            if is_deleted { pod.terminating() } else { pod }
        };
        let owners: Vec<(&str, &str, i32)> = [("one", "one", one), ("two", "two", two)]
            .into_iter()
            .filter(|(owner, _, _)| pods.iter().any(|(set, _, _)| set == owner))
            .collect();
        let pods: Vec<ObjectBuilder> = pods.into_iter().enumerate().map(built).collect();
        let state = observed(&budget, &pods, scales(&owners));
        (budget, state)
    })
}

/// The apiserver evicts this pod, as it does where the status allows it.
fn evict(budget: &ObjectBuilder, state: &Observed, name: &str) -> Observed {
    let mut status = state.budget.status.clone();
    status.disruptions_allowed -= 1;
    status.disrupted_pods.insert(name.into(), Time::of(NOW));
    with_status(state, budget, &status)
}

proptest! {
    #[test]
    fn what_is_written_is_not_written_again((budget, state) in any_state()) {
        let written = with_status(&state, &budget, &synced(&state));
        prop_assert_eq!(next_status(&written, &outcome(plan(&written, NOW)), NOW), None);
    }

    #[test]
    fn the_order_of_the_pods_is_irrelevant((_, state) in any_state()) {
        order_is_irrelevant(&state.pods, |pods| {
            let planned = plan(&Observed { pods: pods.to_vec(), ..state.clone() }, NOW);
            let mut told: Vec<String> = planned.notices.iter().map(|notice| notice.message.clone()).collect();
            told.sort();
            (planned.counts, planned.recheck, told)
        });
    }

    #[test]
    fn no_eviction_is_ever_added((_, state) in any_state()) {
        let before: BTreeMap<_, _> = state.budget.status.disrupted_pods.clone();
        let kept = synced(&state).disrupted_pods;
        prop_assert!(kept.iter().all(|(name, time)| before.get(name) == Some(time)), "{:?}", kept);
    }

    #[test]
    fn evictions_never_leave_fewer_healthy_pods_than_must_be((budget, state) in any_state()) {
        let mut state = with_status(&state, &budget, &synced(&state));
        let desired = state.budget.status.desired_healthy;
        let healthy = |state: &Observed| {
            let going = &state.budget.status.disrupted_pods;
            let is_healthy = |name: &str, is_ready: bool| is_ready && !going.contains_key(name);
            let pods = state.pods.iter().filter(|pod| !pod.metadata.is_being_deleted());
            pods.filter(|pod| is_healthy(pod.metadata.name(), pod.is_ready))
                .map(|pod| pod.metadata.name().to_owned())
                .collect::<Vec<String>>()
        };
        while state.budget.status.disruptions_allowed > 0 {
            let allowed = state.budget.status.disruptions_allowed;
            let Some(victim) = healthy(&state).pop() else {
                prop_assert!(false, "{} more may be evicted, and none is healthy", allowed);
                return Ok(());
            };
            state = evict(&budget, &state, &victim);
            let left = healthy(&state).len();
            prop_assert!(i32::try_from(left).unwrap() >= desired, "{} are left of {}", left, desired);
            // Whether or not the operator gets to look in between.
            let looked = with_status(&state, &budget, &synced(&state));
            prop_assert_eq!(looked.budget.status.disruptions_allowed, allowed - 1);
            state = looked;
        }
    }

    #[test]
    fn nothing_is_allowed_where_nothing_is_expected((_, state) in any_state()) {
        let status = synced(&state);
        prop_assert!(status.disruptions_allowed >= 0);
        prop_assert!(status.expected_pods > 0 || status.disruptions_allowed == 0);
        prop_assert!(status.disruptions_allowed <= status.current_healthy);
    }
}
