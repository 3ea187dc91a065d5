//! Rules for any history of pods, kubelets, attachers and processes that are killed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use shared::testing::apiserver::Server;
use shared::testing::running::{Running, test};

use crate::world::{ATTACHMENTS, add_many, attachment, node, pod, reported, run_attacher, settle, start, uses, volume};

const NODES: [&str; 2] = ["worker-0", "worker-1"];
const VOLUMES: [&str; 2] = ["data", "logs"];

#[derive(Clone, Debug)]
enum Step {
    /// The pod of this volume on this node comes, or goes if it is there.
    Pod(usize, usize),
    /// The kubelet of this node mounts what its pods have, and unmounts the rest.
    Kubelet(usize),
    /// This node is deleted, or its kubelet, which has gone on, makes it again.
    Node(usize),
    Attacher,
    Restart,
    /// The process is killed before its write after so many.
    Kill(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..VOLUMES.len(), 0..NODES.len()).prop_map(|(volume, node)| Step::Pod(volume, node)),
        3 => (0..NODES.len()).prop_map(Step::Kubelet),
        1 => (0..NODES.len()).prop_map(Step::Node),
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

/// The last `volumesInUse` of each node that is deleted: what its machine has mounted.
type Gone = BTreeMap<&'static str, Value>;

fn is_mounted(server: &Server, gone: &Gone, handle: &str, node: &str) -> bool {
    let last = || gone.get(node).cloned().unwrap_or_default();
    let used = server.get("nodes", node).map_or_else(last, |node| node["status"]["volumesInUse"].clone());
    used.as_array().is_some_and(|used| used.contains(&Value::from(volume(handle).as_str())))
}

fn toggle(server: &Server, gone: &mut Gone, name: &'static str) {
    if let Some(used) = gone.remove(name) {
        server.add(&node(name).set(&["status", "volumesInUse"], used));
    } else if let Some(found) = server.get("nodes", name) {
        gone.insert(name, found["status"]["volumesInUse"].clone());
        server.delete("nodes", name);
    }
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
        let exists = |node: &str| server.get("nodes", node).is_some();
        let telling = |node: &&str| exists(node) && reported(server, node).iter().any(|name| name == handle);
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

async fn take(server: &Server, gone: &mut Gone, operators: &mut Vec<Running>, step: &Step) {
    let places = || VOLUMES.into_iter().flat_map(|volume| NODES.map(|node| (volume, node)));
    let mounted: Vec<(&str, &str)> = places()
        .filter(|(volume, node)| is_mounted(server, gone, volume, node) && stands(server, volume, node))
        .collect();
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
        // A kubelet without its node can neither read nor say anything.
        Step::Kubelet(node) if gone.contains_key(NODES[*node]) => {}
        Step::Kubelet(node) => run_kubelet(server, NODES[*node]),
        Step::Node(node) => toggle(server, gone, NODES[*node]),
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
        let is_still = is_mounted(server, gone, volume, node);
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
    let mut gone = Gone::new();
    for step in steps {
        take(&server, &mut gone, &mut operators, step).await;
    }
    server.stop_after_writes(usize::MAX);
    for name in gone.keys().copied().collect::<Vec<_>>() {
        toggle(&server, &mut gone, name);
    }
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
