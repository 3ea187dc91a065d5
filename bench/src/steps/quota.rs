//! Endpoints of rolling pods, the usage of quotas while pods come and go, autoscalers whose load changes, and a start among
//! many kinds.
//! Left out: ServiceCIDRs and aggregated ClusterRoles. A cluster has a handful of these, and they hardly ever change.

mod kinds;
mod load;
mod usage;

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use super::workloads::template_patch;
use crate::about::{About, Flags, Reaction, Target, Targets, nodes_for};
use crate::audit;
use crate::measure::{Bench, NAMESPACE, PROBE, create, in_parallel, small};
use crate::options::BenchOptions;
use crate::sizes::QuotaSizes;

const SERVICE_STEPS: [&str; 2] = ["list the pods of new Deployments", "roll them"];
const AUTOSCALING: &str = "horizontal-pod-autoscaler-operator";
/// Upstream's own periods: those of a local cluster are so short that a test can wait for them.
const AUTOSCALING_DEFAULTS: Flags = &[
    (AUTOSCALING, "--horizontal-pod-autoscaler-sync-period=15s"),
    (AUTOSCALING, "--horizontal-pod-autoscaler-downscale-stabilization=5m0s"),
];

const TARGETS: Targets =
    Targets { ratios: &[Target::TIME, Target::CPU, Target::anonymous("at most 0.33"), Target::WRITES], each: None };

pub(crate) fn about(options: &BenchOptions) -> About {
    let QuotaSizes { services, listed_pods, quotas, charged_pods, autoscalers, kinds, kept_objects } = &options.quota;
    About {
        operators: ["endpoints-operator", AUTOSCALING, "resourcequota-operator"].map(str::to_owned).to_vec(),
        helpers: &["deployment-operator", "replicaset-operator"],
        upstream: "kube-controller-manager",
        controllers: "the endpoints, horizontal-pod-autoscaler and resourcequota controllers",
        reaction: Some(Reaction {
            is: "the time from the end of the\n\
                 deletion of a namespace's last pod until its quota's usage was written for the last time",
            find: audit::usages,
        }),
        steps: format!(
            "{listed_pods} pods of {services} Deployments behind a Service each, until their Endpoints list them; the \
             roll of all of them at\n25 %/25 %, until new pods alone are listed; {quotas} quotas in a namespace each, \
             until all are in force; {charged_pods} pods\nthat come there, until all run; that go, until all usage is \
             0; another load of the pods of\n{autoscalers} autoscalers, from when the last one has told the former until all \
             have told it; a restart with {kinds} kinds defined\nand {kept_objects} objects present, until a quota made \
             meanwhile has the usage of its four kinds. Pods of Deployments and\nReplicaSets are made by \
             deployment-operator and replicaset-operator for all alike"
        ),
        nodes: nodes_for(*charged_pods),
        zones: 3,
        gated: false,
        flags: AUTOSCALING_DEFAULTS,
        page: "docs/benchmarks/quota.md",
        targets: Some(TARGETS),
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.create_namespace(NAMESPACE).await?;
    // Both are at work before they are measured.
    bench.create_selecting_service(PROBE).await?;
    bench.wait_endpoints("there", |endpoints| !endpoints.is_empty()).await?;
    usage::begin(bench).await?;

    if bench.wants(&SERVICE_STEPS) {
        run_services(bench).await?;
    }
    // What comes next is no Service's.
    bench.delete_all::<Service>().await?;
    bench.wait_none::<Endpoints>().await?;
    if bench.wants(&usage::STEPS) {
        usage::run(bench).await?;
    }
    if bench.wants(&[load::STEP]) {
        load::run(bench).await?;
    }
    if bench.wants(&[kinds::STEP]) {
        kinds::run(bench).await?;
    }
    Ok(())
}

async fn run_services(bench: &mut Bench<'_>) -> Result<()> {
    let &QuotaSizes { services, listed_pods, .. } = &bench.options.quota;
    let [list_step, roll_step] = SERVICE_STEPS;
    let pods = i32::try_from(listed_pods / services)?;
    let all: Vec<(String, i32)> = (0..services).map(|at| (small(at), pods)).collect();
    let list = async |bench: &mut Bench<'_>| {
        in_parallel(services, async |at| {
            bench.create_selecting_service(&small(at)).await?;
            bench.create_deployment(&small(at), pods).await
        })
        .await?;
        bench.wait_available(&all).await?;
        bench.wait_all_listed().await
    };
    bench.measure(list_step, list).await?;
    let roll = async |bench: &mut Bench<'_>| {
        in_parallel(services, async |at| bench.patch::<Deployment>(&small(at), &template_patch("2")).await).await?;
        bench.wait_available(&all).await?;
        let pods = i64::from(pods) * i64::from(services);
        bench.wait_until("pods", async || Ok(bench.count::<Pod>().await? == pods)).await?;
        bench.wait_all_listed().await
    };
    bench.measure(roll_step, roll).await?;
    bench.delete_deployments().await
}

impl Bench<'_> {
    async fn create_selecting_service(&self, name: &str) -> Result<()> {
        let service = json!({
            "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
        });
        create::<Service>(&self.api(), service).await.map(drop)
    }

    /// The pods that there are, and no others, are the ready addresses of all Endpoints.
    async fn wait_all_listed(&self) -> Result<()> {
        let living = self.api::<Pod>().list_metadata(&ListParams::default()).await?.items;
        let living: BTreeSet<String> = living.iter().map(ResourceExt::name_any).collect();
        self.wait_endpoints("listed", |endpoints| {
            let names: Vec<&str> = endpoints.iter().flat_map(addresses).collect();
            names.len() == living.len() && names.iter().all(|name| living.contains(*name))
        })
        .await
    }

    async fn wait_endpoints(&self, what: &str, done: impl Fn(&[Endpoints]) -> bool) -> Result<()> {
        let all = ListParams::default();
        self.wait_until(what, async || Ok(done(&self.api::<Endpoints>().list(&all).await?.items))).await
    }
}

fn addresses(endpoints: &Endpoints) -> Vec<&str> {
    let subsets = endpoints.subsets.iter().flatten();
    let addresses = subsets.flat_map(|subset| subset.addresses.iter().flatten());
    addresses.filter_map(|address| address.target_ref.as_ref()?.name.as_deref()).collect()
}
