//! The bench that steps are measured at: a contestant on its cluster, and the measuring of one step.
//! Left out: medians and ratios, which are the report's.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use e2e::apply::apply;
use e2e::audit_log;
use e2e::cluster::{Cluster, Part};
use e2e::progress::Progress;
use e2e::usage::Usage;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::about::About;
use crate::apiserver;
use crate::audit;
use crate::contestant::Contestant;
use crate::figures::{Figures, Measured};
use crate::late_cloud::LateCloud;
use crate::options::BenchOptions;
use crate::running::Running;
use crate::turns::Turn;

pub(crate) const NAMESPACE: &str = "bench";
/// The throttled kube-controller-manager needs a quarter of an hour for a step.
pub(crate) const DEADLINE: Duration = Duration::from_secs(1800);
/// How often a step is looked at: short beside any step, long beside what a look costs the apiserver.
const LOOK: Duration = Duration::from_millis(100);
/// How many requests are made at a time where nothing waits for their order.
pub(crate) const PARALLEL: usize = 20;
/// How long what a step has begun may go on before rest is measured.
pub(crate) const SETTLE: Duration = Duration::from_secs(10);
pub(crate) const LARGE: &str = "large";
pub(crate) const PROBE: &str = "probe";

/// A contestant on its cluster, and what has been measured there.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a BenchOptions,
    about: &'a About,
    pub(crate) cluster: &'a Cluster,
    pub(crate) client: Client,
    running: Running,
    /// How many watches others have open.
    others: f64,
    turn: Turn<'a>,
    measured: Vec<Measured>,
}

impl<'a> Bench<'a> {
    pub(crate) async fn new(
        options: &'a BenchOptions,
        about: &'a About,
        cluster: &'a Cluster,
        running: Running,
        others: f64,
        turn: Turn<'a>,
    ) -> Result<Self> {
        let client = cluster.client().await?;
        Ok(Self { options, about, cluster, client, running, others, turn, measured: Vec::new() })
    }

    pub(crate) fn contestant(&self) -> Contestant {
        self.running.contestant()
    }

    /// The cloud of the bench, where the set has one.
    pub(crate) fn cloud(&self) -> Option<&LateCloud> {
        self.running.cloud()
    }

    pub(crate) fn into_measured(self) -> Vec<Measured> {
        self.measured
    }

    /// Measures a step: `work` from its beginning until what it waits for.
    pub(crate) async fn measure(
        &mut self,
        step: &'static str,
        work: impl AsyncFnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let figures = self.figures(work).await.context(step)?;
        self.keep(step, figures).await;
        Ok(())
    }

    /// Measures a step that runs so many pods to their end.
    pub(crate) async fn measure_pods(
        &mut self,
        step: &'static str,
        pods: u32,
        work: impl AsyncFnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let figures = self.figures(work).await.context(step)?;
        self.keep(step, Figures { pods: Some(pods), ..figures }).await;
        Ok(())
    }

    /// Measures a long step in parts, and lets the others have their turns in between: a machine's speed changes within
    /// minutes, and would be what is compared. What a part leaves to be done falls into another's turn, so each part ends
    /// when nothing is left.
    pub(crate) async fn measure_parts<P>(
        &mut self,
        step: &'static str,
        parts: impl IntoIterator<Item = P>,
        work: impl AsyncFn(&mut Self, P) -> Result<()>,
    ) -> Result<()> {
        let mut sum: Option<Figures> = None;
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                self.turn.pass().await;
            }
            let figures = self.figures(async |bench| work(bench, part).await).await.context(step)?;
            if self.options.wants(step) {
                self.tell(&format!("{step}, part {}", at + 1), &figures);
            }
            sum = Some(match sum {
                Some(before) => before.and(figures),
                None => figures,
            });
        }
        let figures = sum.with_context(|| format!("{step} has no part"))?;
        self.keep(step, figures).await;
        Ok(())
    }

    /// Measures so much time in which nothing is asked for.
    pub(crate) async fn measure_rest(&mut self, step: &'static str, time: Duration) -> Result<()> {
        if !self.wants(&[step]) {
            return Ok(());
        }
        sleep(SETTLE).await;
        self.measure(step, async |_| {
            sleep(time).await;
            Ok(())
        })
        .await
    }

    async fn figures(&mut self, work: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<Figures> {
        let counts_before = apiserver::counts(&self.client).await?;
        let before = self.running.usage(self.cluster)?;
        let apiserver_before = self.cpu_of([Part::Apiserver, Part::Etcd])?;
        let others_before = self.cpu_of([Part::Scheduler, Part::Kwok])?;
        let position = audit_log::end(self.cluster.audit_log()?)?;
        let started = Instant::now();
        work(self).await?;
        let took = started.elapsed();
        let after = self.running.usage(self.cluster)?;
        let apiserver_after = self.cpu_of([Part::Apiserver, Part::Etcd])?;
        let others_after = self.cpu_of([Part::Scheduler, Part::Kwok])?;
        let requests = audit::since(self.cluster.audit_log()?, position)?;
        let counts_after = apiserver::counts(&self.client).await?;
        let users = audit::accounts(&requests, self.about.helpers);
        let each = spent(&before, after);
        let total: Usage = each.values().copied().sum();
        Ok(Figures {
            took,
            cpu: total.cpu,
            apiserver_cpu: apiserver_after.saturating_sub(apiserver_before),
            others_cpu: others_after.saturating_sub(others_before),
            peak_bytes: total.peak_rss,
            resident_bytes: match self.contestant() {
                Contestant::Operators => total.pss,
                Contestant::Unthrottled | Contestant::Throttled => total.rss,
            },
            anonymous_bytes: total.anonymous,
            watches: (counts_after.watches - self.others).max(0.0),
            sent_bytes: counts_after.sent_bytes - counts_before.sent_bytes,
            allocated_bytes: counts_after.allocated_bytes - counts_before.allocated_bytes,
            each,
            requests: audit::by_verb(&requests, &users),
            reactions: self
                .about
                .reaction
                .as_ref()
                .map_or_else(Vec::new, |reaction| (reaction.find)(&requests, &users)),
            pods: None,
        })
    }

    fn cpu_of(&self, parts: [Part; 2]) -> Result<Duration> {
        parts.into_iter().map(|part| Ok(self.cluster.usage(part)?.cpu)).sum()
    }

    pub(crate) fn wants(&self, steps: &[&str]) -> bool {
        steps.iter().any(|step| self.options.wants(step))
    }

    async fn keep(&mut self, step: &'static str, figures: Figures) {
        if !self.options.wants(step) {
            return;
        }
        self.tell(step, &figures);
        self.measured.push(Measured { contestant: self.contestant(), step, figures });
        self.turn.pass().await;
    }

    fn tell(&self, step: &str, figures: &Figures) {
        Progress::default().finish(&format!("  {step}: {}: {figures}", self.running.name()));
    }

    pub(crate) async fn begin(&mut self) -> Result<()> {
        self.running.begin(self.cluster).await
    }

    /// Waits until all of the contestant's processes are ready, and each Lease has somebody.
    pub(crate) async fn wait_ready(&mut self) -> Result<()> {
        self.running.wait_ready(self.cluster).await?;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-system");
        self.wait_until("led", async || {
            let all = leases.list(&ListParams::default()).await?;
            let holder = |lease: Lease| lease.spec?.holder_identity.filter(|holder| !holder.is_empty());
            Ok(all.items.into_iter().all(|lease| holder(lease).is_some()))
        })
        .await
    }

    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.running.stop(self.cluster).await
    }

    /// Lifts the contestant's limit until it is stopped.
    pub(crate) async fn unthrottle(&mut self) -> Result<()> {
        self.running.unthrottle(self.cluster).await
    }

    /// The objects of a kind in the bench's namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Pods need a ServiceAccount, and not every contestant makes one.
    pub(crate) async fn create_namespace(&self, name: &str) -> Result<()> {
        create::<Namespace>(&Api::all(self.client.clone()), json!({"metadata": {"name": name}})).await?;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        apply(&self.client, name, &account).await.map(drop)
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: &Value) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Deletes what there is of a kind. Nobody here collects garbage unless that is measured, so nothing may wait for it.
    pub(crate) async fn delete_all<K>(&self) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn delete_pods(&self) -> Result<()> {
        self.delete_all::<Pod>().await?;
        self.wait_none::<Pod>().await
    }

    /// How many there are of a kind.
    pub(crate) async fn count<K>(&self) -> Result<i64>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        count(&self.api::<K>()).await
    }

    /// All pods run: work that nodes still have to do would be done within the step.
    pub(crate) async fn wait_running(&self) -> Result<()> {
        self.wait_until("running", async || {
            let pods = self.api::<Pod>().list(&ListParams::default()).await?.items;
            let is_running =
                |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
            Ok(pods.iter().all(is_running))
        })
        .await
    }

    pub(crate) async fn wait_none<K>(&self) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.wait_until("gone", async || Ok(self.count::<K>().await? == 0)).await
    }

    pub(crate) async fn wait_until(&self, what: &str, done: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        wait_until(what, DEADLINE, done).await
    }
}

/// Looks again and again until it is so.
pub(crate) async fn wait_until(
    what: &str,
    deadline: Duration,
    mut done: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let end = Instant::now() + deadline;
    while !done().await? {
        if Instant::now() >= end {
            bail!("not {what} within {deadline:?}");
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// The CPU time of each process since `before`; its memory is that of now.
fn spent(before: &BTreeMap<String, Usage>, mut after: BTreeMap<String, Usage>) -> BTreeMap<String, Usage> {
    for (name, usage) in &mut after {
        usage.cpu = usage.cpu.saturating_sub(before.get(name).map_or(Duration::ZERO, |usage| usage.cpu));
    }
    after
}

pub(crate) async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(object).context("describe an object")?;
    Ok(api.create(&PostParams::default(), &object).await?)
}

/// How many there are of these. Asking for all of them again and again would be work that counts in the time.
pub(crate) async fn count<K>(objects: &Api<K>) -> Result<i64>
where
    K: Clone + Debug + DeserializeOwned,
{
    let first = objects.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(i64::try_from(first.items.len())?.saturating_add(first.metadata.remaining_item_count.unwrap_or(0)))
}

/// Does `one` for 0 up to `count`, some at a time.
pub(crate) async fn in_parallel(count: u32, one: impl AsyncFn(u32) -> Result<()>) -> Result<()> {
    stream::iter(0..count).map(|at| one(at)).buffer_unordered(PARALLEL).try_collect().await
}

pub(crate) fn small(at: u32) -> String {
    format!("small{at:03}")
}
