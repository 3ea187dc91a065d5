//! Properties of every StatefulSet with any pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::{A_STATUS, Running, test};
use shared::testing::{NOW, ObjectBuilder, ago, properties, uid};
use statefulset_operator::controller::StatefulSetOperator;
use statefulset_operator::flags::gates::FeatureGates;
use statefulset_operator::objects::names::ordinal;
use statefulset_operator::objects::pod::Pod;
use statefulset_operator::objects::{Retention, StatefulSet, UpdateType};
use statefulset_operator::plan::pods::is_running_and_ready;
use statefulset_operator::plan::rolling::Unavailability;
use statefulset_operator::plan::{Deletion, NewPod, Plan, Step, unavailability};

use crate::fixtures::{Case, NEW, OLD, SetBuilder, case, claim, named, never_ready, pod, set, unready};

const KEY: &str = "default/web";

fn any_set() -> impl Strategy<Value = ObjectBuilder> {
    let policy = || prop::sample::select(vec!["Retain", "Delete"]);
    let numbers = (0..5_i32, prop::sample::select(vec![0, 0, 2]), 0..3_i32);
    (numbers, any::<[bool; 3]>(), policy(), policy(), prop::bool::weighted(0.1)).prop_map(
        |((replicas, start, partition), [is_parallel, is_on_delete, has_claims], scaled, deleted, is_deleted)| {
            let set = set(replicas).with("ordinals", json!({ "start": start })).retention(scaled, deleted);
            let set = if is_on_delete { set.on_delete() } else { set.partition(partition) };
            let set = if is_parallel { set.parallel() } else { set };
            let set = if has_claims { set.with_claims() } else { set };
            if is_deleted { set.terminating() } else { set }
        },
    )
}

/// A pod in any state that can be.
fn any_pod(ordinal: i64) -> impl Strategy<Value = ObjectBuilder> {
    let name = prop_oneof![9 => Just(format!("web-{ordinal}")), 1 => Just(format!("web-0{ordinal}"))];
    let phase = prop::sample::select(vec!["Pending", "Running", "Running", "Unknown", "Succeeded", "Failed"]);
    let revision = prop::sample::select(vec![OLD, NEW, ""]);
    let ready = prop::option::of(0..100_i64);
    (name, phase, revision, ready, any::<bool>(), prop::bool::weighted(0.2)).prop_map(
        move |(name, phase, revision, ready, was_ready, is_terminating)| {
            let pod = named(&name, ordinal, revision).phase(phase);
            let pod = match ready {
                Some(seconds) => pod.ready_since(ago(seconds)),
                None if was_ready => pod,
                None => never_ready(pod),
            };
            if is_terminating { pod.terminating() } else { pod }
        },
    )
}

fn any_case() -> impl Strategy<Value = Case> {
    let pods: Vec<_> = (0..7).map(|ordinal| prop::option::of(any_pod(ordinal))).collect();
    let claims = prop::collection::vec(0..7_i64, 0..5);
    (any_set(), pods, claims, any::<bool>()).prop_map(|(set, pods, claims, max_unavailable)| {
        let claims = claims.into_iter().map(claim);
        case(set, pods.into_iter().flatten()).claims(claims).gates(FeatureGates { max_unavailable })
    })
}

fn created(plan: &Plan) -> Vec<&NewPod> {
    let mut created = Vec::new();
    for step in &plan.replicas {
        if let Step::Create(new) = step {
            created.push(new);
        }
    }
    created
}

fn deleted(plan: &Plan) -> Vec<&Deletion> {
    let mut deleted = Vec::from_iter(&plan.outdated);
    for step in plan.replicas.iter().chain(&plan.condemned) {
        if let Step::Delete(deletion) = step {
            deleted.push(deletion);
        }
    }
    deleted
}

/// The state of a pod at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Ready,
    Pending,
    Ended,
    Terminating,
}

fn any_states() -> impl Strategy<Value = Vec<Option<State>>> {
    let state = prop::sample::select(vec![State::Ready, State::Pending, State::Ended, State::Terminating]);
    prop::collection::vec(prop::option::of(state), 7)
}

/// A pod that is one too many gets ready or goes: of several that ended in order, upstream deletes none.
fn pod_of(set: &StatefulSet, ordinal: i64, state: State) -> ObjectBuilder {
    match state {
        State::Pending => unready(ordinal, OLD).phase("Pending"),
        State::Ended if set.spec.ordinals().contains(&ordinal) => unready(ordinal, OLD).phase("Failed"),
        State::Ready | State::Ended => pod(ordinal, OLD),
        State::Terminating => pod(ordinal, OLD).terminating().set(&["metadata", "deletionGracePeriodSeconds"], 30),
    }
}

/// Runs the whole operator, and the kubelet beside it, until there is nothing left to do.
async fn settle(server: &Server) {
    let running = Running::start::<StatefulSetOperator>(server, &[]);
    running.at_rest().await;
    let (mut before, mut rounds) = (usize::MAX, 0);
    while server.writes().len() != before {
        before = server.writes().len();
        server.run_pods();
        running.at_rest().await;
        running.pass(A_STATUS).await;
        rounds += 1;
        assert!(rounds < 100, "still busy: {:?}", server.writes().last());
    }
}

/// Asserts that all pods are there, and with them their claims and the status.
fn check_settled(server: &Server, set: &StatefulSet) {
    let spec = &set.spec;
    let names: Vec<String> = spec.ordinals().map(|ordinal| format!("default/web-{ordinal}")).collect();
    assert_eq!(server.keys("pods"), names);
    let status = server.get("statefulsets", KEY).unwrap()["status"].clone();
    for count in ["replicas", "readyReplicas", "availableReplicas"] {
        assert_eq!(status[count], spec.replicas, "{status}");
    }
    for (ordinal, key) in spec.ordinals().zip(&names) {
        let revision = server.get("pods", key).unwrap()["metadata"]["labels"]["controller-revision-hash"].clone();
        let is_updated = spec.update_strategy.type_ == UpdateType::RollingUpdate && ordinal >= spec.partition_start();
        assert!(!is_updated || revision == status["updateRevision"], "{key}: {status}");
        for template in &spec.volume_claim_templates {
            let claim = server.get("persistentvolumeclaims", &format!("default/{}-web-{ordinal}", template.name));
            let owners = claim.unwrap()["metadata"]["ownerReferences"].clone();
            let owners: Vec<&Value> = owners.as_array().into_iter().flatten().map(|owner| &owner["uid"]).collect();
            let wanted = json!(uid("web"));
            let is_owned = spec.claim_retention.when_deleted == Retention::Delete;
            assert_eq!(owners, Vec::from_iter(is_owned.then_some(&wanted)), "{key}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_the_pods_is_irrelevant(case in any_case()) {
        properties::order_is_irrelevant(&case.pods, |pods| {
            let case = Case { pods: pods.to_vec(), ..case.clone() };
            case.plan().to_string()
        });
    }

    #[test]
    fn a_plan_stays_within_its_bounds(case in any_case()) {
        let (observed, plan) = (case.observed(), case.plan());
        let (spec, created, deleted) = (&observed.set.spec, created(&plan), deleted(&plan));
        let names: BTreeSet<&str> = observed.pods.iter().map(|pod| pod.metadata.name()).collect();
        for new in &created {
            prop_assert!(spec.ordinals().contains(&new.ordinal) && !names.contains(new.key.name()), "{plan}");
        }
        let mut gone = BTreeSet::new();
        for deletion in &deleted {
            let pod = observed.pods.iter().find(|pod| pod.metadata.uid == deletion.uid).unwrap();
            prop_assert!(!pod.metadata.is_being_deleted() && gone.insert(deletion.uid), "{plan}");
        }
        if plan.is_ordered {
            prop_assert!(created.len() + deleted.len() <= plan.outdated.len().max(1), "{plan}");
            let is_up = |at: i64| {
                let stays = |pod: &&Arc<Pod>| is_running_and_ready(pod) && !pod.metadata.is_being_deleted();
                observed.pods.iter().filter(stays).any(|pod| ordinal(pod) == at)
            };
            for new in &created {
                prop_assert!((spec.ordinals().start..new.ordinal).all(is_up), "{plan}");
            }
        }
        let Unavailability { unavailable, max } = unavailability(&observed, NOW);
        let outdated = i64::try_from(plan.outdated.len()).unwrap();
        let gates = case.gates;
        prop_assert!(outdated <= if gates.max_unavailable { (max - unavailable).max(0) } else { 1 }, "{plan}");
        prop_assert!(!observed.set.metadata.is_being_deleted() || plan.is_empty(), "{plan}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn without_the_annotation_it_does_not_matter_whether_a_pod_was_ever_ready(case in any_case()) {
        let in_doubt = |pod: &ObjectBuilder| pod.clone().set(&["status", "startTime"], Value::Null);
        let pods = case.pods.iter().map(in_doubt).collect();
        let asking = Case { set: case.set.clone().curable(), pods, ..case.clone() };
        prop_assert_eq!(case.plan(), asking.plan());
        prop_assert!(case.plan().stuck.is_none());
    }

    #[test]
    fn a_pod_is_replaced_only_if_it_was_never_ready_and_nothing_else_goes(case in any_case()) {
        let asking = Case { set: case.set.clone().curable(), ..case.clone() };
        let (observed, plan, unasked) = (asking.observed(), asking.plan(), case.plan());
        let spec = &observed.set.spec;
        let Some(eviction) = &plan.stuck else {
            prop_assert_eq!(
                (&plan.replicas, &plan.condemned_claims, &plan.condemned, &plan.outdated),
                (&unasked.replicas, &unasked.condemned_claims, &unasked.condemned, &unasked.outdated)
            );
            return Ok(());
        };
        let pod = observed.pods.iter().find(|pod| pod.metadata.uid == eviction.uid).unwrap();
        prop_assert!(pod.was_never_ready && !pod.readiness.is_ready() && pod.revision() != NEW, "{plan}");
        prop_assert!(!pod.metadata.is_being_deleted() && !pod.phase.is_terminal(), "{plan}");
        prop_assert!(spec.update_strategy.type_ == UpdateType::RollingUpdate, "{plan}");
        prop_assert!(ordinal(pod) >= spec.partition_start() && spec.ordinals().contains(&ordinal(pod)), "{plan}");
        prop_assert!(plan.outdated.is_empty() && unasked.outdated.is_empty(), "{plan}");
        let place = |name: &str| name == pod.metadata.name();
        prop_assert!(deleted(&plan).iter().all(|deletion| !place(deletion.key.name())), "{plan}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_set_gets_its_pods_and_comes_to_rest(set in any_set(), states in any_states()) {
        test(async {
            let (server, view) = (Server::new(), set.build::<StatefulSet>());
            for (ordinal, state) in (0..).zip(&states) {
                if let Some(state) = state {
                    server.add(&pod_of(&view, ordinal, *state));
                    server.add(&claim(ordinal));
                }
            }
            server.add(&set.clone().set(&["metadata", "finalizers"], json!(["foregroundDeletion"])));
            settle(&server).await;
            if view.metadata.is_being_deleted() {
                assert_eq!(server.count("create pods") + server.count("delete pods"), 0);
            } else {
                check_settled(&server, &view);
            }
            let writes = server.writes();
            settle(&server).await;
            assert_eq!(server.writes(), writes, "what is at rest is written again");
        });
    }
}
