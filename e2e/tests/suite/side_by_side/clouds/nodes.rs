//! Nodes that a cloud initializes, routes to, shuts down and loses.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::cloud::{Call, Instance, Route};
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::Life;
use crate::support::objects::{has_route, routed_node};

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const ZONE: &str = "topology.kubernetes.io/zone";
/// The nodes of a life, but for the ones that are gone in the end.
const STAY: [&str; 6] = ["fresh", "known", "routed", "stopped", "started", "ghost"];
/// Of `--cluster-cidr`, but for the foreign one.
const ROUTED: &str = "10.127.0.0/24";
const LEFT: &str = "10.127.1.0/24";
const STOPPED: [(&str, &str); 3] =
    [("stopped", "10.127.2.0/24"), ("started", "10.127.3.0/24"), ("ended", "10.127.4.0/24")];
const FOREIGN: &str = "10.200.0.0/24";

impl Life<'_> {
    pub(super) async fn change_nodes(&self) -> Result<()> {
        self.initialize().await?;
        self.route().await?;
        self.stop_and_end().await
    }

    async fn add(&self, name: &str, spec: &Value, annotations: &Value) -> Result<()> {
        let metadata = json!({"name": self.node(name), "annotations": annotations});
        self.create(&serde_json::from_value(json!({"metadata": metadata, "spec": spec}))?).await
    }

    async fn create(&self, node: &Node) -> Result<()> {
        self.nodes.create(&PostParams::default(), node).await.map(drop).context("create a node")
    }

    fn has_instance(&self, name: &str, instance: Instance) -> Result<()> {
        self.cloud.edit(|file| file.state.instances.insert(self.node(name), instance)).map(drop)
    }

    async fn wait_node(&self, name: &str, what: &str, is_so: impl Fn(&Node) -> bool) -> Result<()> {
        self.wait(&format!("{name} {what}"), async || {
            let node = self.nodes.get(&self.node(name)).await?;
            ensure!(is_so(&node), "{node:?}");
            Ok(())
        })
        .await
    }

    /// A node that is initialized at the second try, one that says its own address, and changes after that.
    async fn initialize(&self) -> Result<()> {
        let labels = [("e2e.example/rack", "7"), ("node.kubernetes.io/rack", "8")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let fresh = Instance {
            addresses: vec![address("InternalIP", "192.0.2.1"), address("ExternalIP", "198.51.100.1")],
            labels: BTreeMap::from(labels),
            ..Instance::default()
        };
        self.has_instance("fresh", fresh.clone())?;
        self.refuse(Call::InstanceMetadata, &self.node("fresh"), "no quota")?;
        let taints = json!([{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
            {"key": "e2e.example/own", "effect": "NoSchedule"}]);
        let spec = json!({"taints": taints});
        self.add("fresh", &spec, &Value::Null).await?;
        let known = Instance {
            addresses: ["192.0.2.2", "192.0.2.3"].map(|ip| address("InternalIP", ip)).to_vec(),
            provider_id: "scripted://other-name".to_owned(),
            ..Instance::default()
        };
        self.has_instance("known", known)?;
        self.add("known", &spec, &json!({PROVIDED_IP: "192.0.2.3"})).await?;
        for name in ["fresh", "known"] {
            let is_initialized = |node: &Node| !has_taint(node, UNINITIALIZED) && !addresses(node).is_empty();
            self.wait_node(name, "is initialized", is_initialized).await?;
            self.told(&self.node(name), "Synced", "").await?;
        }
        let moved = vec![address("InternalIP", "192.0.2.4"), address("Hostname", "fresh.example")];
        self.has_instance("fresh", Instance { addresses: moved, ..fresh })?;
        self.wait_node("fresh", "has its new addresses", |node| addresses(node).contains(&"192.0.2.4".to_owned()))
            .await?;
        let other = Patch::Merge(json!({"metadata": {"labels": {BETA_ZONE: "other"}}}));
        self.nodes.patch(&self.node("known"), &PatchParams::default(), &other).await?;
        self.wait_node("known", "has the zone of the deprecated label", |node| {
            node.labels().get(ZONE).is_some_and(|zone| zone == "other")
        })
        .await
    }

    /// Routes that nobody needs are deleted but for the foreign one, and one is created at the second try.
    async fn route(&self) -> Result<()> {
        let to = |cidr: &str, blackhole| Route {
            target_node: "nobody".to_owned(),
            destination_cidr: cidr.to_owned(),
            blackhole,
        };
        let found = [("foreign", to(FOREIGN, false)), ("left", to(LEFT, false)), ("black", to(LEFT, true))];
        self.cloud.edit(|file| file.state.routes.extend(found.map(|(name, route)| (name.to_owned(), route))))?;
        self.refuse(Call::CreateRoute, &self.node("routed"), "no quota")?;
        self.create(&routed_node(&self.node("routed"), ROUTED)).await?;
        self.wait_routed("routed").await?;
        self.told(&self.node("routed"), "FailedToCreateRoute", "no quota").await?;
        self.wait_routes(["foreign", "routed"].len()).await
    }

    async fn wait_routed(&self, name: &str) -> Result<()> {
        self.wait_node(name, "has its route", has_route).await
    }

    async fn wait_routes(&self, count: usize) -> Result<()> {
        self.wait(&format!("the cloud has {count} routes"), async || {
            let routes = self.cloud.state()?.routes;
            ensure!(routes.len() == count, "{routes:?}");
            Ok(())
        })
        .await
    }

    /// Instances that are shut down, started again and gone, one of them under a node that is ready.
    async fn stop_and_end(&self) -> Result<()> {
        for (name, cidr) in STOPPED {
            self.create(&routed_node(&self.node(name), cidr)).await?;
            self.wait_routed(name).await?;
            if name != "ended" {
                self.has_instance(name, Instance { is_shutdown: true, ..Instance::default() })?;
                self.wait_node(name, "is tainted", |node| has_taint(node, SHUTDOWN)).await?;
            }
        }
        self.has_instance("started", Instance::default())?;
        self.set_ready("started").await?;
        self.wait_node("started", "is not tainted any more", |node| !has_taint(node, SHUTDOWN)).await?;
        self.add("ghost", &json!({}), &Value::Null).await?;
        self.set_ready("ghost").await?;
        for name in ["ghost", "ended"] {
            self.has_instance(name, Instance { exists: false, ..Instance::default() })?;
        }
        self.scene.gone_from(&self.nodes, &self.node("ended")).await?;
        self.told(&self.node("ended"), "DeletingNode", "").await?;
        self.wait_routes(["foreign", "routed", "started", "stopped"].len()).await
    }

    async fn set_ready(&self, name: &str) -> Result<()> {
        let since = "2026-01-01T00:00:00Z";
        let ready = json!({"type": "Ready", "status": "True", "reason": "Kubelet", "message": "",
            "lastHeartbeatTime": since, "lastTransitionTime": since});
        let patch = Patch::Merge(json!({"status": {"conditions": [ready]}}));
        self.nodes.patch_status(&self.node(name), &PatchParams::default(), &patch).await.map(drop).context("set ready")
    }

    /// A line for each part of a node that controllers of clouds write, and for each route.
    pub(super) async fn left_of_nodes(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for name in STAY {
            let node = self.nodes.get(&self.node(name)).await?;
            lines.push(format!("{name} {:?} {:?}", node.labels(), node.finalizers()));
            let spec = node.spec.unwrap_or_default();
            lines.push(format!("{name} {:?} {:?}", spec.provider_id, spec.unschedulable));
            for taint in spec.taints.unwrap_or_default() {
                let is_timed = taint.time_added.is_some();
                lines.push(format!("{name} {} {:?} {} {is_timed}", taint.key, taint.value, taint.effect));
            }
            let NodeStatus { addresses, conditions, .. } = node.status.unwrap_or_default();
            let addresses = addresses.unwrap_or_default();
            lines.push(format!(
                "{name} {:?}",
                addresses.iter().map(|one| (&one.type_, &one.address)).collect::<Vec<_>>()
            ));
            lines.extend(conditions.unwrap_or_default().iter().map(|is| format!("{name} {}", shown(is))));
        }
        let routes = self.cloud.state()?.routes;
        lines.extend(routes.values().map(|route| format!("{route:?}")));
        let mut lines: Vec<String> = lines.iter().map(|line| self.without_names(line)).collect();
        lines.sort();
        Ok(lines)
    }

    pub(super) async fn end_nodes(&self) -> Result<()> {
        for name in STAY {
            self.nodes.delete(&self.node(name), &DeleteParams::default()).await?;
        }
        self.wait("only the foreign route is left", async || {
            let routes = self.cloud.state()?.routes;
            ensure!(routes.keys().eq(["foreign"]), "{routes:?}");
            Ok(())
        })
        .await?;
        self.cloud.edit(|file| {
            file.state.routes.clear();
            file.state.instances.clear();
            file.faults.clear();
        })
    }
}

fn address(type_: &str, address: &str) -> Value {
    json!({"type": type_, "address": address})
}

fn addresses(node: &Node) -> Vec<String> {
    let all = node.status.as_ref().and_then(|status| status.addresses.as_ref()).into_iter().flatten();
    all.map(|one| one.address.clone()).collect()
}

fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().any(|taint| taint.key == key)
}

fn shown(is: &NodeCondition) -> String {
    let has = (is.last_heartbeat_time.is_some(), is.last_transition_time.is_some());
    format!("{} {} {:?} {:?} {has:?}", is.type_, is.status, is.reason, is.message)
}
