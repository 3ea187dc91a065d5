//! Rules for all nodes, and for all clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use node_lifecycle_operator::memory::{Look, Turn, Zones};
use node_lifecycle_operator::objects::Node;
use node_lifecycle_operator::observe::{Observed, ObservedRound};
use node_lifecycle_operator::plan::round::plan_round;
use node_lifecycle_operator::plan::{Change, Plan, Registration, plan};
use node_lifecycle_operator::status::{labels_patch, silent_status, taints_patch};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::taint::{KnownTaint, TaintEffect};
use shared::testing::{NOW, ObjectBuilder, ago, properties};

use crate::fixtures::{CONFIG, in_turn, node, silent_for, tainted, with};

const STATUSES: [&str; 4] = ["True", "False", "Unknown", "Odd"];
const TYPES: [&str; 5] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];
const TAINTS: [&str; 6] = [
    "unreachable:NoSchedule",
    "unreachable:NoExecute",
    "not-ready:NoSchedule",
    "not-ready:NoExecute",
    "disk-pressure:NoSchedule",
    "e2e.example/own:NoExecute",
];

fn any_turn() -> impl Strategy<Value = Turn> {
    prop_oneof![Just(Turn::None), Just(Turn::Waits { since: NOW }), Just(Turn::Now)]
}

/// The JSON of a node, and the memory of it.
fn any_node() -> impl Strategy<Value = (ObjectBuilder, Observed)> {
    let conditions = prop::sample::subsequence(TYPES.to_vec(), 0..=5);
    let statuses = prop::collection::vec(prop::sample::select(STATUSES.to_vec()), 5);
    let taints = prop::sample::subsequence(TAINTS.to_vec(), 0..=6);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (conditions, statuses, taints, 0..120_i64, any_turn(), flags).prop_map(
        |(types, statuses, taints, seconds, turn, (is_labelled, is_cordoned, is_all_disrupted))| {
            let conditions: Vec<(&str, &str)> = types.into_iter().zip(statuses).collect();
            let mut built = tainted(with(node("a"), &conditions), &taints);
            if is_labelled {
                built = built.label("kubernetes.io/os", "linux");
            }
            built = built.set(&["spec", "unschedulable"], is_cordoned);
            let observed = Observed { is_all_disrupted, ..in_turn(silent_for(&built, seconds), turn) };
            (built, observed)
        },
    )
}

/// The node after the plan was executed.
fn applied(built: &ObjectBuilder, observed: &Observed, plan: &Plan) -> (ObjectBuilder, Observed) {
    let read: Arc<Node> = built.build();
    let mut new = built.clone();
    match &plan.change {
        Change::None => {}
        Change::Silence { conditions, was_ready: _ } => {
            let written = silent_status(&read, conditions, NOW)["status"]["conditions"].clone();
            let mut all = built.json()["status"]["conditions"].as_array().cloned().unwrap_or_default();
            for condition in written.as_array().into_iter().flatten() {
                all.retain(|known| known["type"] != condition["type"]);
                all.push(condition.clone());
            }
            new = new.set(&["status", "conditions"], all);
        }
        Change::Taint { add, remove, ends_turn: _ } => {
            let patch = taints_patch(&read, (add, remove), &[], NOW);
            let patch: Value = serde_json::from_str(patch.get()).unwrap_or_default();
            new = new.set(&["spec", "taints"], patch["spec"]["taints"].clone());
        }
    }
    let labels = labels_patch(&plan.labels)["metadata"]["labels"].clone();
    for (label, value) in labels.as_object().into_iter().flatten() {
        new = new.label(label, value.as_str().unwrap_or_default());
    }
    let observed = Observed { node: Some(new.build()), ..observed.clone() };
    (new, observed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn after_two_rounds_of_applying_there_is_nothing_left_to_plan((built, observed) in any_node()) {
        // Taints follow from conditions.
        let (mut built, mut observed) = (built, observed);
        for _ in 0..2 {
            let planned = plan(&observed, &CONFIG, NOW);
            (built, observed) = applied(&built, &observed, &planned);
        }
        let then = plan(&observed, &CONFIG, NOW);
        prop_assert!(!then.is_news(), "{} of {:?}", then, built);
    }

    #[test]
    fn a_node_that_was_heard_of_keeps_its_conditions_and_no_taint_of_others_changes((_, observed) in any_node()) {
        let planned = plan(&observed, &CONFIG, NOW);
        let heard = observed.known.map_or(NOW, |known| known.heard);
        if let Change::Silence { .. } = &planned.change {
            prop_assert!(heard < ago(50), "{}", planned);
        }
        if let Change::Taint { add, remove, ends_turn: _ } = &planned.change {
            let is_own = |taint: &KnownTaint| taint.key.starts_with("node.kubernetes.io/");
            prop_assert!(add.iter().chain(remove).all(is_own), "{}", planned);
            let has = |taint: &KnownTaint| observed.node.as_ref().is_some_and(|node| node.has(*taint));
            prop_assert!(remove.iter().all(has) && !add.iter().any(has), "{}", planned);
            let ends_pods = |taint: &KnownTaint| taint.effect == TaintEffect::NoExecute;
            let (evicts, swaps) = (add.iter().any(ends_pods), remove.iter().any(ends_pods));
            let turn = observed.known.map(|known| known.turn);
            prop_assert!(!evicts || swaps || turn == Some(Turn::Now), "{}", planned);
            prop_assert!(!evicts || !observed.is_all_disrupted, "{}", planned);
        }
        let is_gone = matches!(planned.registration, Some(Registration::Remove { .. }));
        prop_assert!(!is_gone);
    }

    #[test]
    fn a_round_gives_at_most_one_turn_in_a_zone_whatever_the_order(
        turns in prop::collection::vec(any_turn(), 1..6),
        ready in 0..4_usize,
    ) {
        let lost = |(at, turn): (usize, &Turn)| {
            let built = with(node(&format!("n{at}")), &[("Ready", "Unknown")]);
            in_turn(silent_for(&built, 0), *turn)
        };
        let well = (0..ready).map(|at| silent_for(&with(node(&format!("w{at}")), &[("Ready", "True")]), 0));
        let nodes: Vec<Observed> = turns.iter().enumerate().map(lost).chain(well).collect();
        let looked = Some(Look { at: ago(5), is_followed: true });
        let zones = Zones { zones: BTreeMap::new(), is_all_disrupted: false, looked, gaps: None };
        let round = |nodes: &[Observed]| {
            plan_round(&ObservedRound { nodes: nodes.to_vec(), zones: zones.clone(), is_followed: true }, &CONFIG, NOW)
        };
        let planned = round(&nodes);
        let given = planned.turns.iter().filter(|(_, turn)| *turn == Turn::Now).count();
        prop_assert!(given <= 1 && (ready > 0 || given == 0), "{:?}", planned.turns);
        properties::order_is_irrelevant(&nodes, |nodes| {
            let planned = round(nodes);
            (planned.zones, planned.next, planned.start_over, planned.turns.len())
        });
    }

    #[test]
    fn no_json_makes_a_view_panic(odd in prop::sample::select(vec![json!(null), json!([]), json!([{}]), json!([1])])) {
        let built = node("a").set(&["spec", "taints"], odd.clone()).set(&["status", "conditions"], odd);
        let read: Result<Node, _> = serde_json::from_str(&built.json().to_string());
        if let Ok(read) = read {
            prop_assert!(read.conditions.is_empty());
        }
    }
}
