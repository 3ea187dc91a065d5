//! Nodes that are well, silent, unwell, under pressure, cordoned, back and gone: their conditions, taints and labels, what
//! becomes of their pods, and what people are told.
//!
//! The test is their kubelet, and each has a zone of its own. Each life ends before the next one begins, as either side
//! looks after all nodes. Left out: CIDRs, which go by what is free.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use futures::future::try_join_all;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::difference;
use crate::support::clusters::spec;
use crate::support::{DEADLINE, Scene, start_operators, template, with_cluster};

const LIFECYCLE: &str = "node-lifecycle-operator";
const OTHERS: [&str; 4] =
    ["node-ipam-operator", "pod-garbage-collector-operator", "taint-eviction-operator", "ttl-operator"];
const FLAGS: [&str; 4] = [
    "--node-monitor-period=500ms",
    "--node-monitor-grace-period=5s",
    "--node-startup-grace-period=5s",
    "--node-eviction-rate=5",
];
const HOLD: &str = "e2e.example/hold";

/// The nodes, and the conditions that their kubelets write; a node without any has never had a kubelet.
const NODES: [(&str, &[(&str, &str)]); 8] = [
    ("well", &[("Ready", "True"), ("MemoryPressure", "False")]),
    ("silent", &[("Ready", "True"), ("MemoryPressure", "False")]),
    ("never", &[]),
    ("unwell", &[("Ready", "False")]),
    (
        "pressed",
        &[
            ("Ready", "True"),
            ("MemoryPressure", "True"),
            ("DiskPressure", "True"),
            ("PIDPressure", "True"),
            ("NetworkUnavailable", "True"),
        ],
    ),
    ("cordoned", &[("Ready", "True")]),
    ("back", &[("Ready", "True")]),
    ("gone", &[("Ready", "True")]),
];
/// The taints of the one under pressure.
const PRESSED: [&str; 4] = [
    "disk-pressure:NoSchedule",
    "memory-pressure:NoSchedule",
    "network-unavailable:NoSchedule",
    "pid-pressure:NoSchedule",
];
/// Those whose kubelets renew their Leases from the beginning.
const ALIVE: [&str; 5] = ["well", "unwell", "pressed", "cordoned", "gone"];

/// One of the two lives.
struct Life<'a> {
    scene: &'a Scene,
    /// The first part of its nodes' names.
    name: &'static str,
    nodes: Api<Node>,
    /// Whether the node that was silent renews its Lease again.
    is_back: Cell<bool>,
}

impl<'a> Life<'a> {
    fn new(scene: &'a Scene, name: &'static str) -> Self {
        Self { scene, name, nodes: Api::all(scene.client.clone()), is_back: Cell::new(false) }
    }

    fn node(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    async fn add(&self, name: &str, conditions: &[(&str, &str)]) -> Result<()> {
        let node = self.node(name);
        let labels = json!({"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": node});
        let unschedulable = (name == "cordoned").then_some(true);
        let described = json!({"metadata": {"name": node, "labels": labels}, "spec": {"unschedulable": unschedulable}});
        self.nodes
            .create(&PostParams::default(), &serde_json::from_value(described)?)
            .await
            .context("create a node")?;
        // The taint of admission is no controller's, and stays where a node is not ready at the first look.
        self.scene
            .wait_until("the taint of a new node is taken away", DEADLINE, async || {
                let taints = self.nodes.get(&node).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
                ensure!(taints.iter().all(|taint| taint.key != "node.kubernetes.io/not-ready"), "{taints:?}");
                Ok(())
            })
            .await?;
        if conditions.is_empty() { Ok(()) } else { self.say(name, conditions, 0).await }
    }

    /// What the node's kubelet says.
    async fn say(&self, name: &str, conditions: &[(&str, &str)], at: u32) -> Result<()> {
        let conditions = conditions.iter().map(|(type_, status)| {
            json!({"type": type_, "status": status, "reason": "Kubelet", "message": "so it is",
                "lastHeartbeatTime": time(at), "lastTransitionTime": time(at)})
        });
        let status = Patch::Merge(json!({"status": {"conditions": conditions.collect::<Vec<Value>>()}}));
        let done = self.nodes.patch_status(&self.node(name), &PatchParams::default(), &status).await;
        done.map(drop).context("write a node's status")
    }

    /// Renews Leases for ever.
    async fn beat(&self) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.scene.client.clone(), "kube-node-lease");
        let mut beats = interval(Duration::from_millis(500));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for beat in 1_u32.. {
            beats.tick().await;
            let back = self.is_back.get().then_some("back");
            let renewed = ALIVE.into_iter().chain(back).map(async |name| {
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": self.node(name)}, "spec": {"renewTime": micro_time(beat)}});
                let params = PatchParams::apply("kubelet").force();
                leases.patch(&self.node(name), &params, &Patch::Apply(&lease)).await.map(drop)
            });
            try_join_all(renewed).await.context("renew Leases")?;
        }
        Ok(())
    }

    /// A pod on this node, with these tolerations, that is ready and that a finalizer holds.
    async fn add_pod(&self, name: &str, node: &str, tolerations: &Value) -> Result<()> {
        let mut spec = template(name)["spec"].clone();
        spec["nodeName"] = json!(self.node(node));
        spec["tolerations"] = tolerations.clone();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "finalizers": [HOLD]},
            "spec": spec});
        self.scene.apply(&pod).await?;
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": time(0)});
        self.scene.patch_status::<Pod>(name, &json!({"status": {"conditions": [ready]}})).await.map(drop)
    }

    async fn live(&self) -> Result<()> {
        try_join_all(NODES.map(async |(name, conditions)| self.add(name, conditions).await)).await?;
        let for_ever = json!([{"operator": "Exists"}]);
        let for_a_second = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 1}]);
        self.add_pod("lost", "silent", &for_ever).await?;
        self.add_pod("stays", "unwell", &for_ever).await?;
        self.add_pod("leaves", "unwell", &for_a_second).await?;
        self.wait("back", "Unknown", &["unreachable:NoExecute", "unreachable:NoSchedule"]).await?;
        self.is_back.set(true);
        self.say("back", &[("Ready", "True")], 1).await?;
        self.wait("back", "True", &[]).await?;
        self.wait("silent", "Unknown", &["unreachable:NoExecute", "unreachable:NoSchedule"]).await?;
        self.wait("never", "Unknown", &["unreachable:NoExecute", "unreachable:NoSchedule"]).await?;
        self.wait("unwell", "False", &["not-ready:NoExecute", "not-ready:NoSchedule"]).await?;
        self.wait("pressed", "True", &PRESSED).await?;
        self.wait("cordoned", "True", &["unschedulable:NoSchedule"]).await?;
        self.wait("gone", "True", &[]).await?;
        self.nodes.delete(&self.node("gone"), &DeleteParams::default()).await.context("delete a node")?;
        self.scene
            .wait_until("a pod is evicted, another is not ready, and people are told", DEADLINE, async || {
                let leaves: Pod = self.scene.fetch("leaves").await?;
                ensure!(leaves.metadata.deletion_timestamp.is_some(), "{leaves:?}");
                let events = self.events().await?;
                let told = |reason: &str| events.iter().filter(|event| event.contains(reason)).count();
                let counts = ["RegisteredNode", "RemovingNode", " NodeNotReady ", "TaintManagerEviction"].map(told);
                // Of nodes two became Unknown that were ready, and of pods one is on such a node.
                ensure!(counts == [NODES.len(), 1, 3, 1], "{events:?}");
                Ok(())
            })
            .await
    }

    /// Waits for the status of Ready, and for exactly these taints.
    async fn wait(&self, name: &str, ready: &str, taints: &[&str]) -> Result<()> {
        let expected: BTreeSet<String> = taints.iter().map(|taint| format!("node.kubernetes.io/{taint}")).collect();
        self.scene
            .wait_until(&format!("{name} is {ready} with {expected:?}"), DEADLINE, async || {
                let node = self.nodes.get(&self.node(name)).await?;
                let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
                let is_ready = conditions.iter().any(|is| is.type_ == "Ready" && is.status == ready);
                let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
                let found: BTreeSet<String> =
                    taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
                ensure!(is_ready && found == expected, "{found:?} {conditions:?}");
                Ok(())
            })
            .await
    }

    /// A line for each event about these nodes and pods, without the life's names.
    async fn events(&self) -> Result<Vec<String>> {
        let all: Api<Event> = Api::all(self.scene.client.clone());
        let mut lines = BTreeSet::new();
        for event in all.list(&ListParams::default()).await.context("list events")? {
            let component = event.source.and_then(|source| source.component).unwrap_or_default();
            let about = event.involved_object;
            let (kind, name) = (about.kind.unwrap_or_default(), about.name.unwrap_or_default());
            let is_node = kind == "Node" && name.starts_with(&format!("{}-", self.name));
            let is_pod = kind == "Pod" && about.namespace.as_ref() == Some(&self.scene.namespace);
            if !["node-controller", "taint-eviction-controller"].contains(&component.as_str()) || !(is_node || is_pod) {
                continue;
            }
            let (type_, reason) = (event.type_.unwrap_or_default(), event.reason.unwrap_or_default());
            let (version, has_uid) = (about.api_version.unwrap_or_default(), about.uid.is_some());
            let message = event.message.unwrap_or_default();
            let line = format!("{component} {version} {kind} {name} uid:{has_uid} {type_} {reason} {message}");
            lines.insert(self.without_names(&line));
        }
        Ok(lines.into_iter().collect())
    }

    fn without_names(&self, line: &str) -> String {
        line.replace(&format!("{}-", self.name), "").replace(&self.scene.namespace, "<namespace>")
    }

    /// A line for each condition, taint and label of the nodes, and for each condition of their pods.
    async fn left(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for (name, _) in NODES {
            let Some(node) = self.nodes.get_opt(&self.node(name)).await? else { continue };
            lines.push(format!("{name} {:?}", node.labels()));
            for taint in node.spec.and_then(|spec| spec.taints).unwrap_or_default() {
                let is_timed = taint.time_added.is_some();
                lines.push(format!("{name} {} {:?} {} {is_timed}", taint.key, taint.value, taint.effect));
            }
            for is in node.status.and_then(|status| status.conditions).unwrap_or_default() {
                let has_heartbeat = is.last_heartbeat_time.is_some();
                lines.push(format!(
                    "{name} {} {} {:?} {:?} {has_heartbeat} {}",
                    is.type_,
                    is.status,
                    is.reason,
                    is.message,
                    is.last_transition_time.is_some(),
                ));
            }
        }
        for name in ["lost", "stays", "leaves"] {
            let pod: Pod = self.scene.fetch(name).await?;
            let is_going = pod.metadata.deletion_timestamp.is_some();
            for is in pod.status.and_then(|status| status.conditions).unwrap_or_default() {
                lines.push(format!("{name} {is_going} {} {} {:?} {:?}", is.type_, is.status, is.reason, is.message));
            }
        }
        let mut lines: Vec<String> = lines.iter().map(|line| self.without_names(line)).collect();
        lines.sort();
        lines.extend(self.events().await?);
        Ok(lines)
    }

    /// Lives, and gives what is left.
    async fn run(&self) -> Result<Vec<String>> {
        let left = async {
            self.live().await?;
            self.left().await
        };
        tokio::select! {
            stopped = self.beat() => stopped.and(Ok(Vec::new())),
            left = left => left,
        }
    }
}

/// So many seconds after the first heartbeat.
fn time(second: u32) -> String {
    format!("2026-01-01T00:{:02}:{:02}Z", second / 60 % 60, second % 60)
}

fn micro_time(beat: u32) -> String {
    time(beat).replace('Z', ".000000Z")
}

#[test]
fn nodes_have_the_same_conditions_taints_and_events() -> Result<()> {
    let flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    let with = |manager: ControllerManager| ControllerManager { flags: flags.clone(), ..manager };
    let options = ClusterOptions {
        nodes: 1,
        node_lease: 4,
        controller_manager: Some(with(ControllerManager::all())),
        ..ClusterOptions::default()
    };
    with_cluster(options, async |scene| {
        let expected = Life::new(&scene.beside("upstream").await?, "upstream").run().await?;
        assert!(expected.len() > 30, "{expected:?}");
        scene.cluster.stop_controller_manager().await?;
        let ours = [LIFECYCLE].into_iter().chain(OTHERS);
        let rest = ControllerManager::without(ours.map(upstream_controller));
        scene.cluster.start_controller_manager(with(rest)).await?;
        let _operators = start_operators(&scene.cluster, OTHERS).await?;
        let mut lifecycle = spec(&scene.cluster, LIFECYCLE).await?;
        lifecycle.flags.extend(flags.clone());
        let mut lifecycle = scene.cluster.start_operator(&lifecycle).await?;
        lifecycle.wait_ready().await?;
        let found = Life::new(&scene.beside("ours").await?, "ours").run().await?;
        ensure!(found == expected, "{}", difference(&expected, &found));
        Ok(())
    })
}
