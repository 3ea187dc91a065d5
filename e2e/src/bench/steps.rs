//! What the contestants have to do, and when each step counts as done.
//! Left out: the garbage collector's work; what a step leaves behind is deleted by the step itself, unmeasured.

mod batch;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::BenchOptions;
use super::audit;
use super::contestant::{Contestant, Running};
use crate::cluster::Cluster;
use crate::usage::Usage;

const NAMESPACE: &str = "bench";
/// The throttled kube-controller-manager needs minutes for a step.
const DEADLINE: Duration = Duration::from_secs(900);
/// How often a step is looked at: short beside any step, long beside what a look costs the apiserver.
const LOOK: Duration = Duration::from_millis(100);
/// How many requests prepare a step at a time.
const PARALLEL: usize = 20;
const LARGE: &str = "large";
const PROBE: &str = "probe";

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Create,
    Roll,
    ScaleDown,
    Many,
    Restart,
    Job,
    Jobs,
    CronJobs,
}

impl Step {
    /// How many pods it runs to their end, where that is what it is about.
    pub(super) fn pods(self, options: &BenchOptions) -> Option<u32> {
        match self {
            Self::Create | Self::Roll | Self::ScaleDown | Self::Many | Self::Restart => None,
            Self::Job => u32::try_from(options.completions).ok(),
            Self::Jobs => Some(options.jobs),
            Self::CronJobs => Some(options.cron_jobs),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create one large Deployment",
            Self::Roll => "roll it",
            Self::ScaleDown => "scale it to 0",
            Self::Many => "create many Deployments of 2 pods",
            Self::Restart => "restart among many pods",
            Self::Job => "run one large Job",
            Self::Jobs => "run many Jobs of 1 pod",
            Self::CronJobs => "run many CronJobs due at once",
        })
    }
}

/// What one step took.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) took: Duration,
    pub(super) cpu: Duration,
    pub(super) peak_bytes: u64,
    pub(super) anonymous_bytes: u64,
    pub(super) requests: BTreeMap<String, u64>,
    /// Sorted.
    pub(super) reactions: Vec<Duration>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (took, cpu) = (self.took.as_secs_f64(), self.cpu.as_secs_f64());
        let (peak, anonymous) = (self.peak_bytes >> 20, self.anonymous_bytes >> 20);
        write!(f, "{took:.2} s, {cpu:.2} s CPU, peak {peak} MiB, anonymous {anonymous} MiB, {:?}", self.requests)
    }
}

/// Runs one step and measures it.
pub(super) async fn run(
    step: Step,
    options: &BenchOptions,
    cluster: &Cluster,
    running: &mut Running,
) -> Result<Figures> {
    let bench = Bench { client: cluster.client().await? };
    bench.prepare(step, options, cluster, running).await?;
    // A process that starts within the step has used nothing before it.
    let before = if step == Step::Restart { Usage::default() } else { running.usage(cluster)? };
    let position = audit::position(cluster.audit_log()?)?;
    let started = Instant::now();
    match step {
        Step::Create => bench.create(LARGE, options.pods).await?,
        Step::Roll => bench.patch(LARGE, &template_patch("2")).await?,
        Step::ScaleDown => bench.patch(LARGE, &json!({"spec": {"replicas": 0}})).await?,
        Step::Many => bench.create_many(options.deployments).await?,
        Step::Restart => running.begin(cluster).await?,
        Step::Job => bench.create_job(LARGE, options.parallelism, options.completions).await?,
        Step::Jobs => bench.create_jobs(options.jobs).await?,
        // Time has come: they were prepared for it.
        Step::CronJobs => {}
    }
    bench.wait(step, options).await.with_context(|| format!("{}: {step}", running.contestant()))?;
    let took = started.elapsed();
    let after = running.usage(cluster)?;
    let requests = audit::since(cluster.audit_log()?, position)?;
    let users = running.contestant().users(options.set);
    let figures = Figures {
        took,
        cpu: after.cpu.saturating_sub(before.cpu),
        peak_bytes: after.peak_rss,
        anonymous_bytes: after.anonymous,
        requests: audit::by_verb(&requests, &users),
        reactions: match step {
            Step::CronJobs => audit::delays(&requests, &users),
            Step::Create | Step::Roll | Step::ScaleDown | Step::Many | Step::Restart | Step::Job | Step::Jobs => {
                audit::reactions(&requests, &users)
            }
        },
    };
    bench.clean_up(step).await?;
    Ok(figures)
}

struct Bench {
    client: Client,
}

impl Bench {
    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn prepare(
        &self,
        step: Step,
        options: &BenchOptions,
        cluster: &Cluster,
        running: &mut Running,
    ) -> Result<()> {
        match step {
            Step::Create | Step::Job => self.create_namespace().await,
            Step::Roll | Step::ScaleDown | Step::Many | Step::Jobs => Ok(()),
            Step::CronJobs => self.prepare_cron_jobs(options.cron_jobs).await,
            Step::Restart => self.prepare_restart(options, cluster, running).await,
        }
    }

    /// Pods need a ServiceAccount, and nobody here makes one.
    async fn create_namespace(&self) -> Result<()> {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
        Api::namespaced(self.client.clone(), NAMESPACE).create(&PostParams::default(), &account).await?;
        Ok(())
    }

    /// Many pods, one Deployment that asks for something new, and nobody who sees to it.
    async fn prepare_restart(&self, options: &BenchOptions, cluster: &Cluster, running: &mut Running) -> Result<()> {
        // The pods of the throttled one are made without its limit: how they came is not what is measured.
        let mut unthrottled = None;
        if running.contestant() == Contestant::Throttled {
            running.stop(cluster).await?;
            unthrottled = Some(Running::start(Contestant::Unthrottled, options, cluster).await?);
        }
        self.create(LARGE, options.present).await?;
        self.create(PROBE, 1).await?;
        self.wait_available(&[(LARGE.to_owned(), options.present), (PROBE.to_owned(), 1)]).await?;
        match &mut unthrottled {
            Some(helper) => helper.stop(cluster).await?,
            None => running.stop(cluster).await?,
        }
        self.patch(PROBE, &json!({"spec": {"replicas": 2}})).await
    }

    async fn wait(&self, step: Step, options: &BenchOptions) -> Result<()> {
        match step {
            Step::Create => self.wait_available(&[(LARGE.to_owned(), options.pods)]).await,
            Step::Roll => self.wait_rolled(options.pods).await,
            Step::ScaleDown => self.wait_no_pods().await,
            Step::Many => {
                let wanted: Vec<_> = (0..options.deployments).map(|at| (small(at), 2)).collect();
                self.wait_available(&wanted).await
            }
            Step::Restart => self.wait_pod_count(PROBE, 2).await,
            Step::Job => self.wait_jobs(1, options.completions).await,
            Step::Jobs => self.wait_jobs(options.jobs, 1).await,
            Step::CronJobs => self.wait_jobs(options.cron_jobs, 1).await,
        }
    }

    async fn create(&self, name: &str, replicas: i32) -> Result<()> {
        let deployment: Deployment = serde_json::from_value(deployment(name, replicas))?;
        self.deployments().create(&PostParams::default(), &deployment).await?;
        Ok(())
    }

    async fn create_many(&self, count: u32) -> Result<()> {
        let creations = stream::iter(0..count).map(|at| async move { self.create(&small(at), 2).await });
        creations.buffer_unordered(PARALLEL).try_collect().await
    }

    async fn patch(&self, name: &str, patch: &Value) -> Result<()> {
        self.deployments().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    async fn wait_available(&self, wanted: &[(String, i32)]) -> Result<()> {
        let wanted: BTreeMap<&str, i32> = wanted.iter().map(|(name, replicas)| (name.as_str(), *replicas)).collect();
        self.wait_deployments("available", |deployment| {
            let name = deployment.metadata.name.as_deref().unwrap_or_default();
            wanted.get(name).is_none_or(|replicas| is_complete(deployment, *replicas))
        })
        .await
    }

    /// All pods are of the new template, and those of the old one are gone.
    async fn wait_rolled(&self, replicas: i32) -> Result<()> {
        self.wait_deployments("rolled", |deployment| is_complete(deployment, replicas)).await?;
        let selector = ListParams::default().labels("app=large");
        self.wait_until("old pods gone", async || {
            let pods = self.pods().list_metadata(&selector).await?;
            Ok(i32::try_from(pods.items.len())? == replicas)
        })
        .await
    }

    async fn wait_deployments(&self, what: &str, done: impl Fn(&Deployment) -> bool) -> Result<()> {
        self.wait_until(what, async || {
            let all = self.deployments().list(&ListParams::default()).await?;
            Ok(all.items.iter().all(&done))
        })
        .await
    }

    async fn wait_no_pods(&self) -> Result<()> {
        // Asking for all of them again and again would be work that counts in the time.
        let any = ListParams::default().limit(1);
        self.wait_until("no pods", async || Ok(self.pods().list_metadata(&any).await?.items.is_empty())).await
    }

    async fn wait_pod_count(&self, app: &str, count: usize) -> Result<()> {
        let selector = ListParams::default().labels(&format!("app={app}"));
        self.wait_until("pods", async || Ok(self.pods().list_metadata(&selector).await?.items.len() == count)).await
    }

    async fn wait_until(&self, what: &str, mut done: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        while !done().await? {
            if Instant::now() >= end {
                bail!("not {what} within {DEADLINE:?}");
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Leaves an empty namespace to the next step; the large Deployment goes from step to step.
    async fn clean_up(&self, step: Step) -> Result<()> {
        let (all, none) = (ListParams::default(), DeleteParams::default());
        match step {
            Step::Create | Step::Roll | Step::Restart => return Ok(()),
            Step::ScaleDown | Step::Many => {
                self.deployments().delete_collection(&none, &all).await?;
                let replica_sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), NAMESPACE);
                replica_sets.delete_collection(&none, &all).await?;
            }
            Step::Job | Step::Jobs | Step::CronJobs => self.delete_jobs().await?,
        }
        self.pods().delete_collection(&none, &all).await?;
        self.wait_no_pods().await
    }
}

fn small(at: u32) -> String {
    format!("small{at:03}")
}

fn is_complete(deployment: &Deployment, replicas: i32) -> bool {
    let (generation, status) = (deployment.metadata.generation, deployment.status.clone().unwrap_or_default());
    let counts = [status.replicas, status.updated_replicas, status.available_replicas];
    status.observed_generation == generation && counts.iter().all(|count| count.unwrap_or(0) == replicas)
}

fn deployment(name: &str, replicas: i32) -> Value {
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

fn template_patch(round: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"round": round}}}}})
}
