//! Services of type LoadBalancer, and those that were or that are somebody else's.

use anyhow::{Result, ensure};
use e2e::cloud::{Action, Balancer, Call, Fault, Refusal};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{Life, mask};
use crate::clouds::{addresses, balanced};

const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// A node that comes, is excluded, and goes.
const EXTRA: &str = "extra";
/// The fields of a Service that the apiserver gives away.
const GIVEN: [&str; 2] = ["clusterIP", "clusterIPs"];

impl Life<'_> {
    pub(super) async fn change_services(&self) -> Result<()> {
        self.balance("web").await?;
        self.scene.patch::<Service>("web", &json!({"spec": {"ports": [{"port": 81}]}})).await?;
        self.wait_balancer("web", "has the other port", |balancer| balancer.ports == [json!(81)]).await?;

        self.fail_once().await?;
        self.leave_to_others().await?;
        self.change_node_set().await?;

        self.balance("typed").await?;
        self.scene.patch::<Service>("typed", &json!({"spec": {"type": "ClusterIP"}})).await?;
        self.released("typed").await?;
        self.told("typed", "DeletedLoadBalancer", "").await?;
        self.balance("again").await?;
        self.scene.patch::<Service>("again", &json!({"spec": {"type": "NodePort"}})).await?;
        self.released("again").await?;
        self.scene.patch::<Service>("again", &json!({"spec": {"type": "LoadBalancer"}})).await?;
        self.wait_balanced("again").await
    }

    /// Services whose calls fail once, for good or for bad.
    async fn fail_once(&self) -> Result<()> {
        self.refuse(Call::EnsureLoadBalancer, "failing", "no quota")?;
        let busy = Refusal::RetryAfter { milliseconds: 100, message: "busy".to_owned() };
        self.cloud.add(Fault::new(Call::EnsureLoadBalancer, Action::Refuse(busy)).about("patient"))?;
        self.scene.apply(&balanced("failing", 80)).await?;
        self.scene.apply(&balanced("patient", 80)).await?;
        self.wait_balanced("failing").await?;
        self.wait_balanced("patient").await?;
        for (name, words) in [("failing", "no quota"), ("patient", "busy")] {
            self.told(name, "SyncLoadBalancerFailed", words).await?;
            self.told(name, "EnsuredLoadBalancer", "").await?;
        }
        self.refuse(Call::DeleteLoadBalancer, "failing", "in use")?;
        self.delete("failing").await?;
        self.told("failing", "SyncLoadBalancerFailed", "in use").await?;
        self.told("failing", "DeletedLoadBalancer", "").await
    }

    /// A class of somebody else's, and a cloud that leaves a Service to somebody else.
    async fn leave_to_others(&self) -> Result<()> {
        let mut classed = balanced("classed", 80);
        classed["spec"]["loadBalancerClass"] = json!("e2e.example/other");
        self.scene.apply(&classed).await?;
        for call in [Call::EnsureLoadBalancer, Call::UpdateLoadBalancer] {
            let elsewhere = Action::Refuse(Refusal::ImplementedElsewhere);
            self.cloud.add(Fault::new(call, elsewhere).about("elsewhere").always())?;
        }
        self.scene.apply(&balanced("elsewhere", 80)).await?;
        self.wait("the cloud was asked about elsewhere", async || {
            let calls = self.cloud.calls_about(Call::EnsureLoadBalancer, "elsewhere")?;
            ensure!(!calls.is_empty(), "not yet");
            Ok(())
        })
        .await?;
        self.told("elsewhere", "EnsuringLoadBalancer", "").await
    }

    /// A node comes, with a failure, and is excluded; then all are.
    async fn change_node_set(&self) -> Result<()> {
        let extra = self.node(EXTRA);
        self.refuse(Call::UpdateLoadBalancer, "web", "no quota")?;
        let node = serde_json::from_value(json!({"metadata": {"name": extra}}))?;
        self.nodes.create(&PostParams::default(), &node).await?;
        self.wait_balancer("web", "has the new node", |balancer| balancer.nodes.contains(&extra)).await?;
        self.told("web", "UpdateLoadBalancerFailed", "no quota").await?;
        self.exclude(&extra, true).await?;
        self.wait_balancer("web", "lost the node", |balancer| !balancer.nodes.contains(&extra)).await?;
        self.told("web", "UpdatedLoadBalancer", "").await?;

        for node in ["node-0", "node-1"] {
            self.exclude(node, true).await?;
        }
        self.wait_balancer("web", "has no node", |balancer| balancer.nodes.is_empty()).await?;
        for name in ["web", "patient"] {
            self.told(name, "UnAvailableLoadBalancer", "").await?;
        }
        for node in ["node-0", "node-1"] {
            self.exclude(node, false).await?;
        }
        self.wait_balancer("web", "has its nodes again", |balancer| balancer.nodes.len() == 2).await?;
        self.wait_balancer("patient", "has its nodes again", |balancer| balancer.nodes.len() == 2).await
    }

    async fn exclude(&self, node: &str, excluded: bool) -> Result<()> {
        let labels = Patch::Merge(json!({"metadata": {"labels": {EXCLUDED: excluded.then_some("")}}}));
        self.nodes.patch(node, &PatchParams::default(), &labels).await?;
        Ok(())
    }

    async fn balance(&self, name: &str) -> Result<()> {
        self.scene.apply(&balanced(name, 80)).await?;
        self.wait_balanced(name).await
    }

    async fn wait_balanced(&self, name: &str) -> Result<()> {
        self.wait_balancer(name, "exists", |_| true).await?;
        self.wait(&format!("{name} has an address"), async || {
            let service: Service = self.scene.fetch(name).await?;
            ensure!(addresses(&service).len() == 1, "{service:?}");
            Ok(())
        })
        .await
    }

    async fn wait_balancer(&self, name: &str, what: &str, is_so: impl Fn(&Balancer) -> bool) -> Result<()> {
        let service = format!("{}/{name}", self.scene.namespace);
        self.wait(&format!("the balancer of {name} {what}"), async || {
            let balancers = self.cloud.state()?.balancers;
            ensure!(balancers.values().any(|balancer| balancer.service == service && is_so(balancer)), "{balancers:?}");
            Ok(())
        })
        .await
    }

    /// Waits until a Service has neither an address nor the finalizer, and the cloud no balancer for it.
    async fn released(&self, name: &str) -> Result<()> {
        self.wait(&format!("{name} is released"), async || {
            let service: Service = self.scene.fetch(name).await?;
            ensure!(addresses(&service).is_empty() && service.finalizers().is_empty(), "{service:?}");
            let balancers = self.cloud.state()?.balancers;
            let own = format!("{}/{name}", self.scene.namespace);
            ensure!(balancers.values().all(|balancer| balancer.service != own), "{balancers:?}");
            Ok(())
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.scene.api::<Service>().delete(name, &DeleteParams::default()).await?;
        self.scene.gone::<Service>(name).await
    }

    /// A line for each Service and for each balancer.
    pub(super) async fn left_of_services(&self) -> Result<Vec<String>> {
        let balancers = self.cloud.state()?.balancers;
        let without_addresses = |line: String| {
            balancers.values().fold(line, |line, balancer| {
                line.replace(&format!("\"{}\"", balancer.address), &format!("<address of {}>", balancer.service))
            })
        };
        let mut lines = Vec::new();
        for service in self.scene.list::<Service>("").await? {
            let mut service = serde_json::to_value(service)?;
            mask(&mut service);
            mask_given(&mut service["spec"]);
            lines.push(serde_json::to_string_pretty(&service)?);
        }
        lines.extend(balancers.values().map(|Balancer { service, address, ports, nodes, .. }| {
            format!("balancer of {service} \"{address}\" {ports:?} {nodes:?}")
        }));
        let mut lines: Vec<String> =
            lines.into_iter().map(|line| self.without_names(&without_addresses(line))).collect();
        lines.sort();
        Ok(lines)
    }

    pub(super) async fn end_services(&self) -> Result<()> {
        for service in self.scene.list::<Service>("").await? {
            self.delete(&service.name_any()).await?;
        }
        self.nodes.delete(&self.node(EXTRA), &DeleteParams::default()).await?;
        self.scene.gone_from::<Node>(&self.nodes, &self.node(EXTRA)).await?;
        let balancers = self.cloud.state()?.balancers;
        ensure!(balancers.is_empty(), "left behind: {balancers:?}");
        for name in ["web", "elsewhere", "again", "patient"] {
            self.told(name, "DeletedLoadBalancer", "").await?;
        }
        self.cloud.clear()
    }
}

/// What the apiserver gives each Service of its own.
fn mask_given(spec: &mut Value) {
    if let Some(spec) = spec.as_object_mut() {
        for field in GIVEN {
            spec.remove(field);
        }
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        if let Some(node_port) = port.get_mut("nodePort") {
            *node_port = json!("?");
        }
    }
}
