//! Services that get a load balancer, the nodes behind all of these, and the end of all.
//! The cloud is the bench's own, and late.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::about::{About, Target, Targets};
use crate::measure::{Bench, NAMESPACE, create, in_parallel};
use crate::options::BenchOptions;
use crate::sizes::CloudsSizes;

const STEPS: [&str; 3] = ["create Services with a load balancer", "exclude a node", "delete the Services"];
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

const TARGETS: Targets = Targets { ratios: &[Target::TIME, Target::CPU, Target::WRITES], each: None };

pub(crate) fn about(options: &BenchOptions) -> About {
    let CloudsSizes { balanced, cloud_nodes, cloud_latency } = options.clouds;
    About {
        operators: vec!["service-lb-operator".to_owned()],
        helpers: &[],
        upstream: "cloud-controller-manager",
        controllers: "the service-lb controller",
        reaction: None,
        steps: format!(
            "{balanced} Services of type LoadBalancer, until all have their address; a node of {cloud_nodes} is excluded \
             from\nload balancers, until it is behind none; the Services are deleted, until they and the load balancers are \
             gone.\nThe cloud is the bench's own, and answers each call after {cloud_latency} ms. Upstream's manager reaches \
             it by the same\nprotocol, but sends only the names of nodes: a provider that is linked with it needs no message"
        ),
        nodes: cloud_nodes,
        zones: 3,
        gated: false,
        flags: &[],
        page: "docs/benchmarks/clouds.md",
        targets: Some(TARGETS),
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let CloudsSizes { balanced, cloud_nodes, .. } = bench.options.clouds;
    let [come, exclude, go] = STEPS;
    bench.create_namespace(NAMESPACE).await?;
    bench.wait_ready().await?;
    // It is at work before it is measured.
    bench.create_balanced(0).await?;
    bench.wait_balanced(1, cloud_nodes).await?;

    let create_all = async |bench: &mut Bench<'_>| {
        in_parallel(balanced, async |at| bench.create_balanced(at + 1).await).await?;
        bench.wait_balanced(balanced + 1, cloud_nodes).await
    };
    bench.measure(come, create_all).await?;
    let exclude_one = async |bench: &mut Bench<'_>| {
        let nodes: Api<Node> = Api::all(bench.client.clone());
        let excluded = Patch::Merge(json!({"metadata": {"labels": {EXCLUDED: ""}}}));
        nodes.patch("node-0", &PatchParams::default(), &excluded).await?;
        bench.wait_behind(balanced + 1, cloud_nodes.saturating_sub(1)).await
    };
    bench.measure(exclude, exclude_one).await?;
    let delete_all = async |bench: &mut Bench<'_>| {
        bench.delete_all::<Service>().await?;
        bench.wait_none::<Service>().await?;
        let cloud = bench.cloud().context("there is a cloud")?;
        bench.wait_until("gone from the cloud", async || Ok(cloud.is_empty())).await
    };
    bench.measure(go, delete_all).await
}

impl Bench<'_> {
    async fn create_balanced(&self, at: u32) -> Result<()> {
        let service = json!({
            "metadata": {"name": format!("balanced{at:04}")},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
        });
        create::<Service>(&self.api(), service).await.map(drop)
    }

    /// Waits until so many Services have an address. Asking the cloud costs nothing, so the apiserver is asked last.
    async fn wait_balanced(&self, services: u32, nodes: u32) -> Result<()> {
        self.wait_behind(services, nodes).await?;
        self.wait_until("addressed", async || {
            let all = self.api::<Service>().list(&ListParams::default()).await?.items;
            let ingress =
                all.iter().filter_map(|service| service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref());
            Ok(ingress.filter(|ingress| !ingress.is_empty()).count() == usize::try_from(services)?)
        })
        .await
    }

    /// Waits until so many load balancers have so many nodes.
    async fn wait_behind(&self, balancers: u32, nodes: u32) -> Result<()> {
        let (cloud, balancers) = (self.cloud().context("there is a cloud")?, usize::try_from(balancers)?);
        self.wait_until("balanced", async || Ok(cloud.count(nodes) == balancers)).await
    }
}
