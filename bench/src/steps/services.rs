//! A Service of many pods, whose slices list them all and no others.
//! Left out: Services of several ports and families, which are more of the same.

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use super::workloads::template_patch;
use crate::about::{About, nodes_for};
use crate::measure::{Bench, LARGE, NAMESPACE, PROBE, create};
use crate::options::BenchOptions;

pub(crate) fn about(options: &BenchOptions) -> About {
    let BenchOptions { pods, present, .. } = options;
    About {
        operators: ["endpointslice-operator"].map(str::to_owned).to_vec(),
        helpers: &["deployment-operator", "replicaset-operator"],
        upstream: "kube-controller-manager",
        controllers: "the endpointslice controller",
        reaction: None,
        steps: format!(
            "a Deployment of {pods} pods behind a Service, until all of them are listed; its roll at 25 %/25 %, until \
             its\nnew pods are listed and no old one; a restart with {present} pods present until a Service made \
             meanwhile has its slice.\nPods are made by deployment-operator and replicaset-operator for all alike"
        ),
        nodes: nodes_for((*present).max(*pods).unsigned_abs()),
        zones: 3,
        gated: false,
        flags: &[],
        page: "docs/benchmarks/services.md",
        targets: None,
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let &BenchOptions { pods, present, .. } = bench.options;
    bench.create_namespace(NAMESPACE).await?;
    // It is at work before it is measured: a Service without pods has an empty slice.
    bench.create_service(LARGE).await?;
    bench.wait_slices(LARGE, |slices| !slices.is_empty()).await?;

    let list = async |bench: &mut Bench<'_>| {
        bench.create_deployment(LARGE, pods).await?;
        bench.wait_listed(pods).await
    };
    bench.measure("list the pods of a new Deployment", list).await?;
    let roll = async |bench: &mut Bench<'_>| {
        bench.patch::<Deployment>(LARGE, &template_patch("2")).await?;
        bench.wait_listed(pods).await
    };
    bench.measure("roll it", roll).await?;

    // More pods, all listed; then a new Service, and nobody who sees to it.
    bench.unthrottle().await?;
    bench.patch::<Deployment>(LARGE, &json!({"spec": {"replicas": present}})).await?;
    bench.wait_listed(present).await?;
    bench.stop().await?;
    bench.create_service(PROBE).await?;
    let restart = async |bench: &mut Bench<'_>| {
        bench.begin().await?;
        bench.wait_slices(PROBE, |slices| !slices.is_empty()).await
    };
    bench.measure("restart among many pods", restart).await
}

impl Bench<'_> {
    async fn create_service(&self, name: &str) -> Result<()> {
        let service = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
        });
        create::<Service>(&self.api(), service).await.map(drop)
    }

    /// All pods of the large Deployment are rolled out, and these are the endpoints, all of them ready.
    async fn wait_listed(&self, pods: i32) -> Result<()> {
        self.wait_rolled(pods).await?;
        let selector = ListParams::default().labels(&format!("app={LARGE}"));
        let living = self.api::<Pod>().list_metadata(&selector).await?;
        let living: BTreeSet<String> = living.items.iter().map(ResourceExt::name_any).collect();
        self.wait_slices(LARGE, |slices| {
            let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
            let names: Vec<Option<&str>> = endpoints.map(ready_pod).collect();
            names.len() == living.len() && names.iter().all(|name| name.is_some_and(|name| living.contains(name)))
        })
        .await
    }

    async fn wait_slices(&self, service: &str, done: impl Fn(&[EndpointSlice]) -> bool) -> Result<()> {
        let selector = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
        self.wait_until("listed", async || Ok(done(&self.api::<EndpointSlice>().list(&selector).await?.items))).await
    }
}

fn ready_pod(endpoint: &Endpoint) -> Option<&str> {
    let is_ready = endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true));
    endpoint.target_ref.as_ref().filter(|_| is_ready)?.name.as_deref()
}
