//! Rules for any history of pods, kubelets, attachers and processes that are killed.

use proptest::prelude::*;
use serde_json::Value;
use shared::testing::apiserver::Server;
use shared::testing::running::{Running, test};

use crate::world::{ATTACHMENTS, add_many, attachment, pod, reported, run_attacher, settle, start, uses, volume};

const NODES: [&str; 2] = ["worker-0", "worker-1"];
const VOLUMES: [&str; 2] = ["data", "logs"];

#[derive(Clone, Debug)]
enum Step {
    /// The pod of this volume on this node comes, or goes if it is there.
    Pod(usize, usize),
    /// The kubelet of this node mounts what its pods have, and unmounts the rest.
    Kubelet(usize),
    Attacher,
    Restart,
    /// The process is killed before its write after so many.
    Kill(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..VOLUMES.len(), 0..NODES.len()).prop_map(|(volume, node)| Step::Pod(volume, node)),
        3 => (0..NODES.len()).prop_map(Step::Kubelet),
        3 => Just(Step::Attacher),
        1 => Just(Step::Restart),
        1 => (0..4_usize).prop_map(Step::Kill),
    ]
}

fn pod_name(volume: &str, node: &str) -> String {
    format!("{volume}-on-{node}")
}

fn has_pod(server: &Server, volume: &str, node: &str) -> bool {
    server.get("pods", &format!("default/{}", pod_name(volume, node))).is_some()
}

fn is_mounted(server: &Server, handle: &str, node: &str) -> bool {
    let status = server.get("nodes", node).unwrap()["status"].clone();
    let used = status["volumesInUse"].as_array().cloned().unwrap_or_default();
    used.contains(&Value::from(volume(handle).as_str()))
}

/// Whether there is a VolumeAttachment, and it is not being deleted.
fn stands(server: &Server, handle: &str, node: &str) -> bool {
    let found = server.get(ATTACHMENTS, &attachment(handle, node));
    found.is_some_and(|found| found["metadata"]["deletionTimestamp"].is_null())
}

/// Plays the kubelet of a node: it mounts a volume that its node reports, and says before that it will.
fn run_kubelet(server: &Server, node: &str) {
    let used: Vec<&str> = VOLUMES.into_iter().filter(|volume| has_pod(server, volume, node)).collect();
    uses(server, node, &used);
}

/// A volume for one node is on one node.
fn check(server: &Server, step: &Step) {
    for handle in VOLUMES {
        let having = |node: &&str| server.get(ATTACHMENTS, &attachment(handle, node)).is_some();
        let telling = |node: &&str| reported(server, node).iter().any(|name| name == handle);
        let (having, telling) = (NODES.into_iter().filter(having).count(), NODES.into_iter().filter(telling).count());
        assert!(having <= 1 && telling <= 1, "{handle} after {step:?}: {:?}", server.writes());
    }
}

async fn at_rest(operators: &[Running]) {
    // What one of them writes last may be news for the others.
    for _ in 0..2 {
        for running in operators {
            running.at_rest().await;
        }
    }
}

async fn take(server: &Server, operators: &mut Vec<Running>, step: &Step) {
    let places = || VOLUMES.into_iter().flat_map(|volume| NODES.map(|node| (volume, node)));
    let mounted: Vec<(&str, &str)> =
        places().filter(|(volume, node)| is_mounted(server, volume, node) && stands(server, volume, node)).collect();
    match step {
        Step::Pod(volume, node) => {
            let (volume, node) = (VOLUMES[*volume], NODES[*node]);
            let name = pod_name(volume, node);
            if has_pod(server, volume, node) {
                server.delete("pods", &format!("default/{name}"));
            } else {
                server.add(&pod(&name, volume, node));
            }
        }
        Step::Kubelet(node) => run_kubelet(server, NODES[*node]),
        Step::Attacher => run_attacher(server),
        Step::Restart => {
            drop(operators.remove(0));
            operators.push(start(server).await);
        }
        Step::Kill(writes) => server.stop_after_writes(*writes),
    }
    at_rest(operators).await;
    for running in operators.iter_mut().filter(|running| running.is_killed()) {
        *running = start(server).await;
    }
    at_rest(operators).await;
    check(server, step);
    for (volume, node) in mounted {
        let is_still = is_mounted(server, volume, node);
        assert!(!is_still || stands(server, volume, node), "{volume} on {node} after {step:?}: {:?}", server.writes());
    }
}

/// So many processes at once, which know nothing of each other.
async fn live(count: usize, steps: &[Step]) {
    let server = Server::new();
    add_many(&server, &NODES, &VOLUMES);
    let mut operators = Vec::new();
    for _ in 0..count {
        operators.push(start(&server).await);
    }
    for step in steps {
        take(&server, &mut operators, step).await;
    }
    server.stop_after_writes(usize::MAX);
    for _ in 0..3 {
        for node in NODES {
            run_kubelet(&server, node);
        }
        for running in &operators {
            settle(&server, running).await;
        }
    }
    for handle in VOLUMES {
        let wanting: Vec<&str> = NODES.into_iter().filter(|node| has_pod(&server, handle, node)).collect();
        let having: Vec<&str> = NODES.into_iter().filter(|node| stands(&server, handle, node)).collect();
        assert_eq!(having.len(), wanting.len().min(1), "{handle}: {steps:?}");
        assert!(having.iter().all(|node| wanting.contains(node)), "{handle}: {steps:?}");
        for node in NODES {
            let is_reported = reported(&server, node).iter().any(|name| name == handle);
            assert_eq!(is_reported, having.contains(&node), "{handle} on {node}: {steps:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_happens_a_mounted_volume_stays_and_pods_get_theirs_one_node_at_a_time(
        steps in prop::collection::vec(any_step(), 1..24),
    ) {
        test(live(1, &steps));
    }

    #[test]
    fn the_same_holds_for_two_processes_without_an_election(steps in prop::collection::vec(any_step(), 1..24)) {
        test(live(2, &steps));
    }
}
