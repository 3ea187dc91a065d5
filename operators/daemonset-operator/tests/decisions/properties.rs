//! Properties of every DaemonSet, whatever its nodes and pods.

use std::collections::BTreeSet;

use daemonset_operator::plan::BURST;
use daemonset_operator::plan::nodes::{Eligibility, eligibility};
use daemonset_operator::plan::update::limits;
use proptest::prelude::*;
use serde_json::json;
use shared::testing::properties::{comes_to_rest, order_is_irrelevant};
use shared::testing::{ObjectBuilder, ago};

use crate::fixtures::{Case, NEW, OLD, SetBuilder, case, node, pinned, pod, set, tainted, unready};

const NODES: [&str; 4] = ["a", "b", "c", "d"];

fn any_set() -> impl Strategy<Value = ObjectBuilder> {
    let max = prop::sample::select(vec![json!(0), json!(1), json!(2), json!("50%"), json!("100%")]);
    (max, 0..3_u8, any::<bool>(), prop::sample::select(vec![0, 0, 30])).prop_map(|(max, kind, selects, min_ready)| {
        let set = match kind {
            0 => set().unavailable(max),
            1 => set().surge(max),
            _ => set().on_delete(),
        };
        let set = set.with("minReadySeconds", min_ready);
        if selects { set.with_pod("nodeSelector", json!({ "disk": "fast" })) } else { set }
    })
}

fn any_nodes() -> impl Strategy<Value = Vec<ObjectBuilder>> {
    let effect = prop::sample::select(vec!["", "", "", "NoSchedule", "NoExecute"]);
    let any_node = |name: &'static str| {
        (effect.clone(), any::<bool>()).prop_map(move |(effect, is_fast)| {
            let of = if effect.is_empty() { node(name) } else { tainted(name, "k", effect) };
            if is_fast { of.label("disk", "fast") } else { of }
        })
    };
    NODES.into_iter().take(3).map(any_node).collect::<Vec<_>>()
}

/// A pod in any state that can be, on one of the nodes or on one that is gone.
fn any_pod(name: String) -> impl Strategy<Value = ObjectBuilder> {
    let phase = prop::sample::select(vec!["Running", "Running", "Running", "Pending", "Succeeded", "Failed"]);
    let place = (prop::sample::select(NODES.to_vec()), prop::bool::weighted(0.2));
    let hash = prop::sample::select(vec![OLD, NEW, "older"]);
    (place, hash, phase, prop::option::of(0..60_i64), prop::bool::weighted(0.15)).prop_map(
        move |((at, is_pinned), hash, phase, ready, is_leaving)| {
            let pod = match (is_pinned, ready) {
                (true, _) => pinned(&name, at, hash),
                (false, Some(seconds)) => unready(&name, at, hash).phase(phase).ready_since(ago(seconds)),
                (false, None) => unready(&name, at, hash).phase(phase),
            };
            if is_leaving { pod.terminating() } else { pod }
        },
    )
}

fn any_case() -> impl Strategy<Value = Case> {
    let pods: Vec<_> = (0..7).map(|at| prop::option::of(any_pod(format!("web-{at}")))).collect();
    (any_set(), any_nodes(), pods).prop_map(|(set, nodes, pods)| case(set, nodes, pods.into_iter().flatten()))
}

/// Writes take effect at once, pods that go are gone, and new ones are available.
fn carry_out(case: &mut Case, made: &mut usize) -> bool {
    let plan = case.plan();
    let gone: BTreeSet<_> = plan.delete.iter().map(|deletion| deletion.uid.to_string()).collect();
    case.pods.retain(|pod| !gone.contains(pod.json()["metadata"]["uid"].as_str().unwrap_or_default()));
    for new in &plan.create {
        *made += 1;
        case.pods.push(pod(&format!("new-{made}"), &new.node, NEW));
    }
    !plan.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_the_pods_is_irrelevant(case in any_case()) {
        order_is_irrelevant(&case.pods, |pods| Case { pods: pods.to_vec(), ..case.clone() }.plan().to_string());
    }

    #[test]
    fn planning_again_after_applying_comes_to_rest(case in any_case()) {
        let (mut case, mut made) = (case, 0);
        comes_to_rest(20, || carry_out(&mut case, &mut made));
        let observed = case.observed();
        for node in &observed.nodes {
            let name = node.metadata.name();
            let here = observed.pods.iter().filter(|pod| pod.node().is_some_and(|at| **at == *name));
            let staying = here.clone().filter(|pod| !pod.metadata.is_being_deleted()).count();
            match eligibility(&observed.set, node) {
                Eligibility::Runs => prop_assert!(here.count() > 0, "{name}"),
                Eligibility::Stays(_) => {}
                Eligibility::Leaves(_) => prop_assert_eq!(staying, 0, "{}", name),
            }
        }
    }

    #[test]
    fn a_plan_stays_within_its_bounds(case in any_case()) {
        let (observed, plan) = (case.observed(), case.plan());
        prop_assert!(plan.create.len() <= BURST && plan.delete.len() <= BURST);
        let mut gone = BTreeSet::new();
        for deletion in &plan.delete {
            let pod = observed.pods.iter().find(|pod| pod.metadata.uid == deletion.uid).unwrap();
            prop_assert!(!pod.metadata.is_being_deleted() && gone.insert(deletion.uid), "{plan}");
        }
        let mut places = BTreeSet::new();
        for new in &plan.create {
            let node = observed.nodes.iter().find(|node| *node.metadata.name() == *new.node).unwrap();
            prop_assert_eq!(eligibility(&observed.set, node), Eligibility::Runs);
            prop_assert!(places.insert(&new.node), "{plan}");
        }
    }

    #[test]
    fn of_available_pods_no_more_go_than_may_be_unavailable(
        max in 0..5_i32,
        hashes in prop::collection::vec(any::<bool>(), 4),
    ) {
        let pods = hashes.iter().zip(NODES).map(|(is_new, at)| {
            pod(&format!("web-{at}"), at, if *is_new { NEW } else { OLD })
        });
        let case = case(set().unavailable(max), NODES.map(node), pods);
        let allowed = limits(&case.observed().set, 4).unwrap().unavailable;
        let old = hashes.iter().filter(|is_new| !**is_new).count();
        let plan = case.plan();
        prop_assert_eq!(plan.delete.len(), old.min(usize::try_from(allowed).unwrap()));
        prop_assert!(plan.create.is_empty() && plan.look_again.is_none());
    }
}
