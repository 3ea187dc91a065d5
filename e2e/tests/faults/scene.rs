//! A small cluster, operators that reach it through a proxy each, and what tests ask of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use e2e::apply::apply;
use e2e::cluster::{Cluster, ClusterOptions, ControllerManager};
use e2e::operator::{Operator, OperatorSpec, upstream_controller};
use e2e::proxy::{Action, Proxy, Rule, Verdict};
use http::Method;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::timeline::Timeline;

/// How long what has to happen may take. Only a failing test ever waits for so long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const DEPLOYMENT: &str = "deployment-operator";
pub(crate) const REPLICA_SET: &str = "replicaset-operator";

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests");

/// One operator behind its own proxy.
pub(crate) struct Behind {
    pub(crate) operator: Operator,
    pub(crate) proxy: Proxy,
}

impl Behind {
    /// SIGKILL, and a new process in its place, which meets no fault.
    pub(crate) fn kill_and_restart(&mut self) -> Result<()> {
        self.operator.kill();
        self.proxy.clear();
        self.operator.restart()
    }

    /// How many of the answered creates, patches and deletes of these paths there were.
    pub(crate) fn count(&self, method: &Method, path: &str) -> usize {
        self.proxy.writes(path).iter().filter(|exchange| exchange.method == *method).count()
    }

    /// How many writes to this path were done and their answers lost.
    pub(crate) fn lost(&self, path: &str) -> usize {
        let writes = self.proxy.writes(path);
        writes.iter().filter(|exchange| exchange.upstream_status.is_some() && exchange.status.is_none()).count()
    }
}

/// Holds for every n-th request that it is asked about.
pub(crate) fn each<T>(n: usize) -> impl Fn(&T) -> bool + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move |_| (asked.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(n)
}

/// The n-th write of what controllers work with.
pub(crate) fn nth_work(action: Action, n: u32) -> Rule {
    Rule::new(action).writes().when(|seen| is_work(&seen.path)).nth(n)
}

/// Every n-th such write.
pub(crate) fn each_work(action: Action, n: usize) -> Rule {
    let each = each(n);
    Rule::new(action).writes().when(move |seen| is_work(&seen.path) && each(seen)).always()
}

/// What controllers work with: no events, leases, and reviews of tokens and access.
pub(crate) fn is_work(path: &str) -> bool {
    !["/events", "/leases", "reviews"].iter().any(|other| path.contains(other))
}

/// Where a request is held until its operator is dead.
#[derive(Clone)]
pub(crate) struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    pub(crate) fn is_reached(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn reached(&self) {
        let _ = self.0.subscribe().wait_for(|reached| *reached).await;
    }

    /// Holds a request before it is forwarded: it never is.
    pub(crate) fn before(&self) -> Action {
        let gate = self.clone();
        Action::before(move |_| gate.clone().hold())
    }

    /// Holds an answer: the write has happened, and nobody is told.
    pub(crate) fn after(&self) -> Action {
        let gate = self.clone();
        Action::after(move |_| gate.clone().hold())
    }

    async fn hold(self) -> Verdict {
        self.0.send_replace(true);
        std::future::pending().await
    }
}

/// A cluster with operators.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) timeline: Timeline,
    // Before the cluster, which ends what they talk to.
    pub(crate) operators: Vec<Behind>,
    pub(crate) cluster: Cluster,
}

impl Scene {
    /// Starts a cluster and one of each operator, without leader election.
    pub(crate) async fn start(names: &[&str]) -> Result<Self> {
        let mut scene = Self::without_operators(names).await?;
        for name in names {
            scene.add_operator(name, name, &[]).await?;
        }
        Ok(scene)
    }

    /// Starts a cluster in which nobody does what these operators are for.
    pub(crate) async fn without_operators(names: &[&str]) -> Result<Self> {
        let controllers = ControllerManager::without(names.iter().map(|name| upstream_controller(name)));
        let options = ClusterOptions { nodes: 2, controller_manager: Some(controllers), ..ClusterOptions::default() };
        let cluster = Cluster::start(options).await?;
        let client = cluster.client().await?;
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        poll("there is a service account for pods", DEADLINE, async || {
            accounts.get_opt("default").await.context("look for the service account")
        })
        .await?;
        let timeline = Timeline::start(&client).await?;
        Ok(Self { client, timeline, operators: Vec::new(), cluster })
    }

    /// Starts an operator; with flags, one that elects a leader.
    pub(crate) async fn add_operator(&mut self, name: &str, replica: &str, flags: &[&str]) -> Result<()> {
        let account = self.cluster.install(&Path::new(MANIFESTS).join(name)).await?;
        let proxy = Proxy::start(&self.cluster).await?;
        let spec = OperatorSpec {
            name: replica.to_owned(),
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            server: Some(proxy.url()),
            leader_elect: !flags.is_empty(),
            ..OperatorSpec::new(replica, binary(name)?, &account)
        };
        let mut operator = self.cluster.start_operator(&spec).await?;
        operator.wait_ready().await?;
        self.operators.push(Behind { operator, proxy });
        Ok(())
    }

    pub(crate) fn operator(&mut self, name: &str) -> Result<&mut Behind> {
        self.operators.iter_mut().find(|it| it.operator.name() == name).with_context(|| format!("no {name} here"))
    }

    pub(crate) fn behind(&self, name: &str) -> Result<&Behind> {
        self.operators.iter().find(|it| it.operator.name() == name).with_context(|| format!("no {name} here"))
    }

    /// As [`poll`], but what it says in the end is all that there is.
    pub(crate) async fn wait<T>(&self, what: &str, check: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
        match poll(what, DEADLINE, check).await {
            Ok(done) => Ok(done),
            Err(error) => {
                self.cluster.keep_logs();
                let state = self.describe().await.unwrap_or_else(|error| format!("{error:#}"));
                Err(error.context(state))
            }
        }
    }

    /// Runs a test's checks; one that fails is told with all that there is.
    pub(crate) async fn told<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Ok(done) => Ok(done),
            Err(error) => {
                self.cluster.keep_logs();
                let state = self.describe().await.unwrap_or_else(|error| format!("{error:#}"));
                Err(error.context(state))
            }
        }
    }

    pub(crate) async fn apply(&self, object: &Value) -> Result<()> {
        apply(&self.client, "default", object).await.map(drop)
    }

    /// Changes the spec of `name` by a merge patch.
    pub(crate) async fn patch_spec<K>(&self, name: &str, spec: &Value) -> Result<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        let patch = Patch::Merge(json!({ "spec": spec }));
        api.patch(name, &PatchParams::default(), &patch).await.with_context(|| format!("patch {name}"))
    }

    pub(crate) async fn pods(&self) -> Result<Vec<Pod>> {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        Ok(api.list(&ListParams::default()).await.context("list pods")?.items)
    }

    pub(crate) async fn replica_sets(&self) -> Result<Vec<ReplicaSet>> {
        let api: Api<ReplicaSet> = Api::default_namespaced(self.client.clone());
        Ok(api.list(&ListParams::default()).await.context("list replica sets")?.items)
    }

    pub(crate) async fn deployment(&self, name: &str) -> Result<Deployment> {
        let api: Api<Deployment> = Api::default_namespaced(self.client.clone());
        api.get(name).await.context("look at the deployment")
    }

    /// Waits until the ReplicaSet has what it asks for and says so.
    pub(crate) async fn wait_replica_set(&self, name: &str) -> Result<()> {
        let api: Api<ReplicaSet> = Api::default_namespaced(self.client.clone());
        let what = format!("replica set {name} is complete");
        self.wait(&what, async || {
            let set = api.get(name).await.context("look at the replica set")?;
            let pods = self.pods().await?.len();
            Ok((is_complete(&set) && set.spec.and_then(|spec| spec.replicas) == i32::try_from(pods).ok()).then_some(()))
        })
        .await
    }

    /// Waits until the Deployment is rolled out, and all its ReplicaSets are complete.
    pub(crate) async fn wait_rollout(&self, name: &str) -> Result<()> {
        self.wait(&format!("deployment {name} is rolled out"), async || {
            let deployment = self.deployment(name).await?;
            let sets = self.replica_sets().await?;
            let pods = i32::try_from(self.pods().await?.len())?;
            let complete = sets.iter().all(is_complete) && is_rolled_out(&deployment, pods);
            Ok(complete.then_some(()))
        })
        .await
    }

    /// Checks [`Timeline::check_bounds`] for all that has happened.
    pub(crate) async fn check_bounds(&self, since: u64, most: i32, least: usize) -> Result<()> {
        self.timeline.catch_up().await?;
        self.told(self.timeline.check_bounds(since, most, least)).await
    }

    /// Lets the ReplicaSet's operator see one more change, and checks that all is as it was then. What it still had in
    /// mind would have come by then.
    pub(crate) async fn stays_replica_set(&self, name: &str) -> Result<()> {
        let before = self.names().await?;
        self.patch_spec::<ReplicaSet>(name, &json!({ "minReadySeconds": 1 })).await?;
        self.wait_replica_set(name).await?;
        self.same_pods(&before).await
    }

    /// As [`Self::stays_replica_set`]: the change goes from the Deployment through the ReplicaSets and back.
    pub(crate) async fn stays_deployment(&self, name: &str) -> Result<()> {
        let before = self.names().await?;
        self.patch_spec::<Deployment>(name, &json!({ "minReadySeconds": 1 })).await?;
        self.wait(&format!("deployment {name} passes its minReadySeconds on"), async || {
            let sets = self.replica_sets().await?;
            let active = sets.iter().filter_map(|set| set.spec.as_ref()).filter(|spec| spec.replicas != Some(0));
            let mut seconds = active.map(|spec| spec.min_ready_seconds);
            Ok(seconds.all(|seconds| seconds == Some(1)).then_some(()))
        })
        .await?;
        self.wait_rollout(name).await?;
        self.same_pods(&before).await
    }

    async fn names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.pods().await?.iter().map(ResourceExt::name_any).collect();
        names.sort();
        Ok(names)
    }

    async fn same_pods(&self, before: &[String]) -> Result<()> {
        let after = self.names().await?;
        if after != before {
            return self.told(Err(anyhow::anyhow!("pods changed from {before:?} to {after:?}"))).await;
        }
        Ok(())
    }

    /// Pods, ReplicaSets, Deployments and the ends of the operators' logs.
    pub(crate) async fn describe(&self) -> Result<String> {
        let mut text = String::new();
        for pod in self.pods().await? {
            let phase = pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
            let going = if pod.metadata.deletion_timestamp.is_some() { ", terminating" } else { "" };
            writeln!(text, "pod {}: {phase}{going}", pod.name_any())?;
        }
        for set in self.replica_sets().await? {
            let asked = set.spec.as_ref().and_then(|spec| spec.replicas);
            writeln!(text, "replica set {}: {asked:?}, status {}", set.name_any(), json!(set.status))?;
        }
        let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
        for deployment in deployments.list(&ListParams::default()).await.context("list deployments")? {
            let generation = deployment.metadata.generation;
            writeln!(text, "deployment {}: {generation:?}, {}", deployment.name_any(), json!(deployment.status))?;
        }
        for behind in &self.operators {
            writeln!(text, "{}:\n{}", behind.operator.name(), behind.operator.log_tail(25))?;
        }
        Ok(text)
    }
}

/// Asks until the answer is something, or the deadline has passed.
pub(crate) async fn poll<T>(
    what: &str,
    deadline: Duration,
    mut check: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(done) = check().await? {
            return Ok(done);
        }
        if Instant::now() >= end {
            bail!("not within {} s: {what}", deadline.as_secs());
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// An operator's program, which cargo puts into the folder above the tests'.
fn binary(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("find this program")?;
    let dir = own.parent().and_then(Path::parent).context("find the folder of programs")?;
    Ok(dir.join(name))
}

fn is_complete(set: &ReplicaSet) -> bool {
    let asked = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
    let Some(status) = &set.status else { return false };
    status.observed_generation == set.metadata.generation
        && status.replicas == asked
        && status.available_replicas.unwrap_or(0) == asked
}

fn is_rolled_out(deployment: &Deployment, pods: i32) -> bool {
    let asked = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
    let Some(status) = &deployment.status else { return false };
    let counts = [status.replicas, status.updated_replicas, status.available_replicas].map(Option::unwrap_or_default);
    status.observed_generation == deployment.metadata.generation && counts == [asked; 3] && pods == asked
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": image }] },
    })
}

/// A ReplicaSet `web`.
pub(crate) fn replica_set(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": template("web:0"),
        },
    })
}

/// A Deployment `web` that keeps its old ReplicaSets: at most a quarter of its pods more or fewer than wanted.
pub(crate) fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 2,
            "strategy": { "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
            "selector": { "matchLabels": { "app": "web" } },
            "template": template("web:0"),
        },
    })
}

/// The change of the spec that makes a rollout.
pub(crate) fn new_image(number: usize) -> Value {
    json!({ "template": template(&format!("web:{number}")) })
}
