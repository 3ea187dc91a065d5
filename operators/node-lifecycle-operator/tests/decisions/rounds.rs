//! A look at all nodes: upstream's cases of several nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use node_lifecycle_operator::memory::{Look, Turn, Zones};
use node_lifecycle_operator::observe::{Observed, ObservedRound};
use node_lifecycle_operator::plan::round::{RoundPlan, plan_round};
use shared::testing::{NOW, ObjectBuilder, ago};

use crate::fixtures::{CONFIG, after, in_turn, node, silent_for, tainted, with};

/// The last look was a period ago.
fn observed(nodes: Vec<Observed>) -> ObservedRound {
    let looked = Some(Look { at: ago(5), is_followed: true });
    let zones = Zones { zones: BTreeMap::new(), is_all_disrupted: false, looked, gaps: None };
    ObservedRound { nodes, zones, is_followed: true }
}

fn round(observed: &ObservedRound) -> RoundPlan {
    plan_round(observed, &CONFIG, NOW)
}

fn well(name: &str) -> ObjectBuilder {
    with(node(name), &[("Ready", "True")])
}

/// A node that has all taints but the one that it waits for.
fn lost(name: &str) -> ObjectBuilder {
    tainted(with(node(name), &[("Ready", "Unknown")]), &["unreachable:NoSchedule"])
}

fn turns(plan: &RoundPlan) -> Vec<String> {
    plan.turns.iter().map(|(node, turn)| format!("{node} {turn:?}")).collect()
}

#[test]
fn nodes_are_synced_whose_grace_period_is_over() {
    let nodes = ["a", "b", "c"].map(well);
    let [a, b, c] = [(&nodes[0], 50), (&nodes[1], 51), (&nodes[2], 7)].map(|(node, ago)| silent_for(node, ago));
    let plan = round(&observed(vec![a, b, c]));
    assert_eq!(plan.to_string(), "sync b (nodes: 3, disrupted zones: 0)");
    assert_eq!((plan.start_over, plan.next), (None, Duration::from_secs(5)));
}

#[test]
fn after_a_gap_nobody_is_judged() {
    let nodes = || vec![silent_for(&well("a"), 5000), silent_for(&well("b"), 51)];
    let away = round(&ObservedRound { is_followed: false, ..observed(nodes()) });
    assert_eq!(away.to_string(), "restart grace periods, nothing (cannot watch nodes or their leases)");
    assert_eq!((away.start_over, away.zones.looked.map(|look| look.is_followed)), (Some(NOW), Some(false)));
    let back = round(&ObservedRound { zones: away.zones, ..observed(nodes()) });
    assert_eq!(back.start_over, Some(NOW));
    let at_once = round(&ObservedRound { zones: back.zones, ..observed(nodes()) });
    assert_eq!(at_once.to_string(), "sync a, b (nodes: 2, disrupted zones: 0)");
    let mut paused = observed(nodes());
    paused.zones.looked = Some(Look { at: ago(600), is_followed: true });
    let expected = "restart grace periods, nothing (no look at the nodes since 2026-01-01T11:50:00Z)";
    assert_eq!(round(&paused).to_string(), expected);
}

#[test]
fn gaps_that_outlast_a_grace_period_are_reported_once_until_they_end() {
    let mut zones = observed(vec![]).zones;
    let mut reports = Vec::new();
    for (at, is_followed) in (0..).step_by(5).zip([vec![false; 30], vec![true; 2], vec![false; 12]].concat()) {
        let now = after(at);
        let plan = plan_round(&ObservedRound { nodes: vec![], zones, is_followed }, &CONFIG, now);
        if matches!(plan.gap, Some((_, true))) {
            reports.push(at);
        }
        zones = plan.zones;
    }
    assert_eq!(reports, [55, 160 + 55], "the grace period is 50 s");
}

#[test]
fn gaps_are_reported_a_grace_period_after_the_clock_was_set_back_at_the_latest() {
    let gap = |zones, now| plan_round(&ObservedRound { nodes: vec![], zones, is_followed: false }, &CONFIG, now);
    let ahead = gap(observed(vec![]).zones, after(8 * 3600));
    let back = gap(ahead.zones, NOW);
    let reported = gap(back.zones, after(51)).gap.map(|(_, is_reported)| is_reported);
    assert_eq!((back.gap.map(|(_, is_reported)| is_reported), reported), (Some(false), Some(true)));
}

/// Upstream: `TestAddNode`, `TestTryOrdering` and `TestTry` of the queue.
#[test]
fn one_node_of_a_zone_is_tainted_at_a_time_and_the_first_come_first() {
    let since = |seconds| Turn::Waits { since: ago(seconds) };
    let nodes = vec![
        silent_for(&lost("a"), 0),
        in_turn(silent_for(&lost("b"), 0), since(5)),
        in_turn(silent_for(&lost("c"), 0), since(7)),
        silent_for(&well("d"), 0),
        silent_for(&well("e"), 0),
        silent_for(&well("f"), 0),
    ];
    let plan = round(&observed(nodes.clone()));
    assert_eq!(plan.to_string(), "sync c (nodes: 6, disrupted zones: 0)");
    assert_eq!(turns(&plan), ["a Waits { since: 2026-01-01T12:00:00Z }", "c Now"]);
    assert_eq!(plan.next, Duration::from_secs(5), "the next token comes later");

    // The same a little later: whose turn it is keeps it, and the next waits for a token.
    let mut nodes: Vec<Observed> = nodes;
    nodes[0] = in_turn(nodes[0].clone(), since(0));
    nodes[2] = in_turn(nodes[2].clone(), Turn::Now);
    let then = ObservedRound { zones: plan.zones, ..observed(nodes) };
    let soon = plan_round(&then, &CONFIG, after(7));
    assert_eq!((turns(&soon), soon.next), (vec![], Duration::from_secs(3)));
    assert_eq!(turns(&plan_round(&then, &CONFIG, after(10))), ["b Now"]);
}

/// Upstream: `TestDelNode` and `TestTryRemovingWhileTry` of the queue.
#[test]
fn a_node_that_is_well_or_has_its_taint_does_not_wait() {
    let tainted = tainted(lost("a"), &["unreachable:NoSchedule", "unreachable:NoExecute"]);
    let nodes = vec![
        in_turn(silent_for(&tainted, 0), Turn::Now),
        in_turn(silent_for(&well("b"), 0), Turn::Waits { since: ago(5) }),
    ];
    let plan = round(&observed(nodes));
    assert_eq!((turns(&plan), plan.sync.len()), (vec!["a None".to_owned(), "b None".to_owned()], 0));
}

/// Upstream: `TestMonitorNodeHealth`.
#[test]
fn while_no_zone_has_a_ready_node_no_pod_has_to_leave() {
    let taints = ["unreachable:NoSchedule", "unreachable:NoExecute"];
    let before = observed(vec![silent_for(&tainted(lost("a"), &taints), 0), silent_for(&lost("b"), 0)]);
    let entered = round(&before);
    assert_eq!(entered.to_string(), "sync a (no zone has a ready node, nodes: 2)");
    assert_eq!((turns(&entered), entered.start_over, entered.zones.is_all_disrupted), (vec![], None, true));

    // One is ready again: all others get a whole grace period, and the rates are as before.
    let after = vec![silent_for(&well("a"), 5000), silent_for(&lost("b"), 5000), silent_for(&well("c"), 5000)];
    let left = round(&ObservedRound { zones: entered.zones, ..observed(after) });
    assert_eq!(left.to_string(), "restart grace periods, nothing (a node is ready again, nodes: 3)");
    assert_eq!((left.start_over, left.zones.is_all_disrupted), (Some(NOW), false));
    // An empty bucket is empty at another rate too.
    assert_eq!(turns(&left), ["b Waits { since: 2026-01-01T12:00:00Z }"]);
}
