//! What a set of steps is made of: a bench to work at, and the measuring of one step. Each set is a module below: what its
//! page says of it, and its steps in turn, with what is made ready before and cleared away after them unmeasured.
//! Left out: medians and ratios, which are the report's.

pub(super) mod batch;
pub(super) mod garbage;
pub(super) mod services;
pub(super) mod workloads;

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::BenchOptions;
use super::audit::{self, Request};
use super::contestant::{Contestant, Running};
use crate::cluster::{Cluster, Part};
use crate::progress::Progress;

const NAMESPACE: &str = "bench";
/// The throttled kube-controller-manager needs minutes for a step.
const DEADLINE: Duration = Duration::from_secs(900);
/// How often a step is looked at: short beside any step, long beside what a look costs the apiserver.
const LOOK: Duration = Duration::from_millis(100);
/// How many requests prepare a step at a time.
const PARALLEL: usize = 20;
const LARGE: &str = "large";
const PROBE: &str = "probe";

/// A set of steps: whose work it is, and what its page says.
pub(super) struct About {
    /// The operators that do the work.
    pub(super) operators: &'static [&'static str],
    /// The operators that do for every contestant what is not measured.
    pub(super) helpers: &'static [&'static str],
    /// Whose work it is upstream.
    pub(super) controllers: &'static str,
    pub(super) reaction: Option<Reaction>,
    /// The steps, in the words of the page.
    pub(super) steps: String,
    /// How many pods there are at most at a time.
    pub(super) most_pods: u32,
    /// Where the page is.
    pub(super) page: &'static str,
    /// How to measure it again.
    pub(super) command: &'static str,
}

/// How soon a contestant does something about what happens.
pub(super) struct Reaction {
    /// From when to when, in the words of the page.
    pub(super) is: &'static str,
    /// The reactions of these users, sorted.
    pub(super) find: fn(&[Request], &[String]) -> Vec<Duration>,
}

/// One step of one contestant in one round.
pub(super) struct Measured {
    pub(super) contestant: Contestant,
    pub(super) step: &'static str,
    pub(super) figures: Figures,
}

/// What one step took.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) took: Duration,
    pub(super) cpu: Duration,
    /// What the apiserver and etcd have used meanwhile, whoever it was for.
    pub(super) apiserver_cpu: Duration,
    pub(super) peak_bytes: u64,
    pub(super) anonymous_bytes: u64,
    pub(super) requests: BTreeMap<String, u64>,
    /// Sorted.
    pub(super) reactions: Vec<Duration>,
    /// How many pods it ran to their end, where that is what it is about.
    pub(super) pods: Option<u32>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [took, cpu, apiserver_cpu] = [self.took, self.cpu, self.apiserver_cpu].map(|it| it.as_secs_f64());
        let (peak, anonymous) = (self.peak_bytes >> 20, self.anonymous_bytes >> 20);
        write!(
            f,
            "{took:.2} s, {cpu:.2} s CPU ({apiserver_cpu:.2} s the apiserver's), peak {peak} MiB, anonymous {anonymous} MiB, {:?}",
            self.requests
        )
    }
}

/// A contestant on its cluster, and what has been measured there.
pub(super) struct Bench<'a> {
    options: &'a BenchOptions,
    about: &'a About,
    cluster: &'a Cluster,
    client: Client,
    running: Running,
    measured: Vec<Measured>,
}

impl<'a> Bench<'a> {
    pub(super) async fn new(
        options: &'a BenchOptions,
        about: &'a About,
        cluster: &'a Cluster,
        running: Running,
    ) -> Result<Self> {
        let client = cluster.client().await?;
        Ok(Self { options, about, cluster, client, running, measured: Vec::new() })
    }

    pub(super) fn into_measured(self) -> Vec<Measured> {
        self.measured
    }

    /// Measures a step: `work` from its beginning until what it waits for.
    async fn measure(&mut self, step: &'static str, work: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let figures = self.figures(work).await.context(step)?;
        self.keep(step, figures);
        Ok(())
    }

    /// Measures a step that runs so many pods to their end.
    async fn measure_pods(
        &mut self,
        step: &'static str,
        pods: u32,
        work: impl AsyncFnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let figures = self.figures(work).await.context(step)?;
        self.keep(step, Figures { pods: Some(pods), ..figures });
        Ok(())
    }

    async fn figures(&mut self, work: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<Figures> {
        let before = self.running.usage(self.cluster)?;
        let apiserver_before = self.apiserver_cpu()?;
        let position = audit::position(self.cluster.audit_log()?)?;
        let started = Instant::now();
        work(self).await?;
        let took = started.elapsed();
        let after = self.running.usage(self.cluster)?;
        let apiserver_after = self.apiserver_cpu()?;
        let requests = audit::since(self.cluster.audit_log()?, position)?;
        let users = self.running.users();
        Ok(Figures {
            took,
            cpu: after.cpu.saturating_sub(before.cpu),
            apiserver_cpu: apiserver_after.saturating_sub(apiserver_before),
            peak_bytes: after.peak_rss,
            anonymous_bytes: after.anonymous,
            requests: audit::by_verb(&requests, &users),
            reactions: self
                .about
                .reaction
                .as_ref()
                .map_or_else(Vec::new, |reaction| (reaction.find)(&requests, &users)),
            pods: None,
        })
    }

    fn apiserver_cpu(&self) -> Result<Duration> {
        Ok(self.cluster.usage(Part::Apiserver)?.cpu + self.cluster.usage(Part::Etcd)?.cpu)
    }

    fn keep(&mut self, step: &'static str, figures: Figures) {
        Progress::default().finish(&format!("  {step}: {figures}"));
        self.measured.push(Measured { contestant: self.running.contestant(), step, figures });
    }

    /// Starts the contestant.
    async fn begin(&mut self) -> Result<()> {
        self.running.begin(self.cluster).await
    }

    /// Stops the contestant.
    async fn stop(&mut self) -> Result<()> {
        self.running.stop(self.cluster).await
    }

    /// Lifts the contestant's limit until it is stopped.
    async fn unthrottle(&mut self) -> Result<()> {
        self.running.unthrottle(self.cluster).await
    }

    /// The objects of a kind in the bench's namespace.
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Pods need a ServiceAccount, and nobody here makes one.
    async fn create_namespace(&self) -> Result<()> {
        create::<Namespace>(&Api::all(self.client.clone()), json!({"metadata": {"name": NAMESPACE}})).await?;
        create::<ServiceAccount>(&self.api(), json!({"metadata": {"name": "default"}})).await?;
        Ok(())
    }

    /// Deletes what there is of a kind. Nobody here collects garbage unless that is measured, so nothing may wait for it.
    async fn delete_all<K>(&self) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
        Ok(())
    }

    async fn delete_pods(&self) -> Result<()> {
        self.delete_all::<Pod>().await?;
        self.wait_none::<Pod>().await
    }

    /// Asking for all of them again and again would be work that counts in the time.
    async fn is_none<K>(&self) -> Result<bool>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        Ok(self.api::<K>().list_metadata(&ListParams::default().limit(1)).await?.items.is_empty())
    }

    async fn wait_none<K>(&self) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.wait_until("gone", async || self.is_none::<K>().await).await
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
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(object).context("describe an object")?;
    Ok(api.create(&PostParams::default(), &object).await?)
}

/// Does `one` for 0 up to `count`, some at a time.
async fn in_parallel(count: u32, one: impl AsyncFn(u32) -> Result<()>) -> Result<()> {
    stream::iter(0..count).map(|at| one(at)).buffer_unordered(PARALLEL).try_collect().await
}

fn small(at: u32) -> String {
    format!("small{at:03}")
}
