//! Deployments and their pods.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::about::{About, Reaction, nodes_for};
use crate::audit;
use crate::measure::{Bench, LARGE, NAMESPACE, PROBE, create, in_parallel, small};
use crate::options::BenchOptions;
use crate::sizes::WorkloadsSizes;

pub(crate) fn about(options: &BenchOptions) -> About {
    let BenchOptions { pods, present, workloads: WorkloadsSizes { deployments }, .. } = options;
    About {
        operators: ["deployment-operator", "replicaset-operator"].map(str::to_owned).to_vec(),
        helpers: &[],
        upstream: "kube-controller-manager",
        controllers: "the deployment and replicaset controllers",
        reaction: Some(Reaction {
            is: "the time from the end of a Deployment's\n\
                 creation to the request for its ReplicaSet, as the apiserver's audit log dates both",
            find: audit::reactions,
        }),
        steps: format!(
            "one Deployment of {pods} pods; its roll at 25 %/25 %; its scaling to 0; {deployments} Deployments of 2 \
             pods; a restart with\n{present} pods present until a Deployment changed meanwhile has its new pod"
        ),
        nodes: nodes_for((*present).max(*pods).unsigned_abs()),
        zones: 3,
        gated: false,
        flags: &[],
        page: "docs/benchmarks/deployments.md",
        targets: None,
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let &BenchOptions { present, workloads: WorkloadsSizes { deployments }, .. } = bench.options;
    bench.create_namespace(NAMESPACE).await?;
    run_lives(bench, deployments).await?;

    // Many pods, one Deployment that asks for something new, and nobody who sees to it.
    bench.unthrottle().await?;
    bench.create_deployment(LARGE, present).await?;
    bench.create_deployment(PROBE, 1).await?;
    bench.wait_available(&[(LARGE.to_owned(), present), (PROBE.to_owned(), 1)]).await?;
    bench.stop().await?;
    bench.patch::<Deployment>(PROBE, &json!({"spec": {"replicas": 2}})).await?;
    let restart = async |bench: &mut Bench<'_>| {
        bench.begin().await?;
        bench.wait_pod_count(PROBE, 2).await
    };
    bench.measure("restart among many pods", restart).await
}

/// One large Deployment from its creation to its end, and many small ones.
pub(super) async fn run_lives(bench: &mut Bench<'_>, deployments: u32) -> Result<()> {
    let pods = bench.options.pods;
    // It is at work before it is measured.
    bench.create_deployment(PROBE, 1).await?;
    bench.wait_available(&[(PROBE.to_owned(), 1)]).await?;
    bench.delete_deployments().await?;

    let create = async |bench: &mut Bench<'_>| {
        bench.create_deployment(LARGE, pods).await?;
        bench.wait_available(&[(LARGE.to_owned(), pods)]).await
    };
    bench.measure("create one large Deployment", create).await?;
    let roll = async |bench: &mut Bench<'_>| {
        bench.patch::<Deployment>(LARGE, &template_patch("2")).await?;
        bench.wait_rolled(pods).await
    };
    bench.measure("roll it", roll).await?;
    let scale_down = async |bench: &mut Bench<'_>| {
        bench.patch::<Deployment>(LARGE, &json!({"spec": {"replicas": 0}})).await?;
        bench.wait_none::<Pod>().await
    };
    bench.measure("scale it to 0", scale_down).await?;
    bench.delete_deployments().await?;

    let create_many = async |bench: &mut Bench<'_>| {
        in_parallel(deployments, async |at| bench.create_deployment(&small(at), 2).await).await?;
        let wanted: Vec<_> = (0..deployments).map(|at| (small(at), 2)).collect();
        bench.wait_available(&wanted).await
    };
    bench.measure("create many Deployments of 2 pods", create_many).await?;
    bench.delete_deployments().await
}

impl Bench<'_> {
    pub(super) async fn create_deployment(&self, name: &str, replicas: i32) -> Result<()> {
        create::<Deployment>(&self.api(), deployment(name, replicas)).await.map(drop)
    }

    pub(super) async fn delete_deployments(&self) -> Result<()> {
        self.delete_all::<Deployment>().await?;
        self.delete_all::<ReplicaSet>().await?;
        self.delete_pods().await
    }

    pub(super) async fn wait_available(&self, wanted: &[(String, i32)]) -> Result<()> {
        let wanted: BTreeMap<&str, i32> = wanted.iter().map(|(name, replicas)| (name.as_str(), *replicas)).collect();
        self.wait_deployments("available", |deployment| {
            let name = deployment.metadata.name.as_deref().unwrap_or_default();
            wanted.get(name).is_none_or(|replicas| is_complete(deployment, *replicas))
        })
        .await
    }

    /// All pods are of the new template, and those of the old one are gone.
    pub(super) async fn wait_rolled(&self, replicas: i32) -> Result<()> {
        self.wait_deployments("rolled", |deployment| is_complete(deployment, replicas)).await?;
        self.wait_pod_count(LARGE, usize::try_from(replicas)?).await
    }

    async fn wait_deployments(&self, what: &str, done: impl Fn(&Deployment) -> bool) -> Result<()> {
        self.wait_until(what, async || {
            let all = self.api::<Deployment>().list(&ListParams::default()).await?;
            Ok(all.items.iter().all(&done))
        })
        .await
    }

    /// Every status says what there is, so nobody has one to write.
    pub(super) async fn wait_settled(&self) -> Result<()> {
        self.wait_deployments("settled", |deployment| {
            deployment.status.as_ref().is_some_and(|status| status.terminating_replicas.unwrap_or(0) == 0)
        })
        .await?;
        self.wait_until("settled", async || {
            Ok(self.api::<ReplicaSet>().list(&ListParams::default()).await?.items.iter().all(is_settled))
        })
        .await
    }

    pub(super) async fn wait_pod_count(&self, app: &str, count: usize) -> Result<()> {
        let selector = ListParams::default().labels(&format!("app={app}"));
        self.wait_until("pods", async || Ok(self.api::<Pod>().list_metadata(&selector).await?.items.len() == count))
            .await
    }
}

fn is_complete(deployment: &Deployment, replicas: i32) -> bool {
    let (generation, status) = (deployment.metadata.generation, deployment.status.clone().unwrap_or_default());
    let counts = [status.replicas, status.updated_replicas, status.available_replicas];
    status.observed_generation == generation && counts.iter().all(|count| count.unwrap_or(0) == replicas)
}

fn is_settled(replica_set: &ReplicaSet) -> bool {
    let status = replica_set.status.clone().unwrap_or_default();
    status.observed_generation == replica_set.metadata.generation
        && Some(status.replicas) == replica_set.spec.as_ref().and_then(|spec| spec.replicas)
        && status.terminating_replicas.unwrap_or(0) == 0
}

pub(super) fn deployment(name: &str, replicas: i32) -> Value {
    let quarter = json!({"maxSurge": "25%", "maxUnavailable": "25%"});
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": quarter},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": {"round": "1"}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "web", "image": "nginx:1.7.9", "ports": [{"containerPort": 80}],
                        "env": [{"name": "MODE", "value": "bench"}],
                        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
                    }],
                },
            },
        },
    })
}

pub(super) fn template_patch(round: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"round": round}}}}})
}
