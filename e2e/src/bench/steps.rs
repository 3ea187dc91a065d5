//! The parts of a set of steps: a bench to work at, and the measuring of one step. Each set is a module below: the
//! texts of its page, and its steps in turn. Objects are made before them and cleared away after them, unmeasured.
//! Left out: medians and ratios, which are the report's.

pub(super) mod all;
pub(super) mod batch;
pub(super) mod garbage;
pub(super) mod identity;
pub(super) mod nodes;
pub(super) mod quota;
pub(super) mod services;
pub(super) mod sets;
pub(super) mod workloads;

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, bail};
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

use super::BenchOptions;
use super::apiserver;
use super::audit::{self, Request};
use super::contestant::{Contestant, Running};
use super::report::{totals, whole};
use super::turns::Turn;
use crate::apply::apply;
use crate::audit_log;
use crate::cluster::{Cluster, Part};
use crate::progress::Progress;
use crate::usage::Usage;

const NAMESPACE: &str = "bench";
/// The throttled kube-controller-manager needs a quarter of an hour for a step.
const DEADLINE: Duration = Duration::from_secs(1800);
/// How often a step is looked at: short beside any step, long beside what a look costs the apiserver.
const LOOK: Duration = Duration::from_millis(100);
/// How many requests prepare a step at a time.
const PARALLEL: usize = 20;
/// How long what a step has begun may go on before rest is measured.
const SETTLE: Duration = Duration::from_secs(10);
/// More nodes write so many heartbeats that a cluster which waits for its turn slows the other's down.
const QUIET_NODES_MAX: u32 = 100;
const LARGE: &str = "large";
const PROBE: &str = "probe";

/// A set of steps: whose work it is, and what its page says.
pub(super) struct About {
    /// The operators that do the work.
    pub(super) operators: Vec<String>,
    /// The operators that do for every contestant what is not measured.
    pub(super) helpers: &'static [&'static str],
    /// Whose work it is upstream.
    pub(super) controllers: &'static str,
    pub(super) reaction: Option<Reaction>,
    /// The steps, in the words of the page.
    pub(super) steps: String,
    /// How many nodes there are; see [`nodes_for`].
    pub(super) nodes: u32,
    /// In how many zones they are.
    pub(super) zones: u32,
    /// Flags of operators, by name, which kube-controller-manager gets, too.
    pub(super) flags: Flags,
    /// Where the page is.
    pub(super) page: &'static str,
    /// The targets, where the page shows them and the costs of each operator.
    pub(super) targets: Option<Targets>,
}

impl About {
    /// Whether the contestants take turns, step by step, or come one after the other with all their steps.
    pub(super) fn takes_turns(&self) -> bool {
        self.nodes <= QUIET_NODES_MAX
    }
}

/// Flags, each with the operator that has it.
pub(super) type Flags = &'static [(&'static str, &'static str)];

/// As many nodes as so many pods need: each has a place, and a node of kwok takes what it is given.
fn nodes_for(pods: u32) -> u32 {
    pods / 500 + 10
}

/// The targets beside kube-controller-manager at 2,000 qps.
pub(super) struct Targets {
    pub(super) ratios: &'static [Target],
    /// The target for one operator, where it has one of its own, in the words of the page.
    pub(super) each: Option<&'static str>,
}

/// A ratio to be reached.
pub(super) struct Target {
    pub(super) what: &'static str,
    pub(super) wanted: &'static str,
    pub(super) figure: fn(&Figures) -> f64,
    pub(super) of_all: OfAll,
}

impl Target {
    const TIME: Self =
        Self { what: "time", wanted: "at most 1.0", figure: |figures| figures.took.as_secs_f64(), of_all: OfAll::Sum };
    pub(super) const CPU: Self =
        Self { what: "CPU", wanted: "at most 0.5", figure: |figures| figures.cpu.as_secs_f64(), of_all: OfAll::Sum };
    /// Without events.
    const WRITES: Self = Self {
        what: "writes",
        wanted: "at most 1.0",
        figure: |figures| whole(totals(&figures.requests).0),
        of_all: OfAll::Sum,
    };

    const fn apiserver_cpu(wanted: &'static str) -> Self {
        let figure = |figures: &Figures| figures.apiserver_cpu.as_secs_f64();
        Self { what: "apiserver's CPU", wanted, figure, of_all: OfAll::Sum }
    }

    const fn anonymous(wanted: &'static str) -> Self {
        let figure = |figures: &Figures| whole(figures.anonymous_bytes);
        Self { what: "anonymous", wanted, figure, of_all: OfAll::Most }
    }
}

/// How one figure of all steps is made of each step's.
#[derive(Clone, Copy)]
pub(super) enum OfAll {
    Sum,
    Most,
}

impl OfAll {
    pub(super) fn of(self, figures: impl Iterator<Item = f64>) -> f64 {
        match self {
            Self::Sum => figures.sum(),
            Self::Most => figures.fold(0.0, f64::max),
        }
    }
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

/// The costs of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) took: Duration,
    pub(super) cpu: Duration,
    /// The CPU time of the apiserver and etcd meanwhile, also for other clients.
    pub(super) apiserver_cpu: Duration,
    /// That of kube-scheduler and kwok, who do the same beside every contestant: it tells how fast the machine was.
    pub(super) others_cpu: Duration,
    pub(super) peak_bytes: u64,
    /// At its end: the operators' pages, those that several share in proportion, or all of kube-controller-manager's.
    pub(super) resident_bytes: u64,
    pub(super) anonymous_bytes: u64,
    /// How many watches the contestant had open at its end.
    pub(super) watches: f64,
    /// The bytes that the apiserver has sent meanwhile, also to other clients.
    pub(super) sent_bytes: f64,
    /// The bytes that it has allocated meanwhile: like its CPU, but whatever the machine's speed.
    pub(super) allocated_bytes: f64,
    /// The usage of each process, by name.
    pub(super) each: BTreeMap<String, Usage>,
    pub(super) requests: BTreeMap<String, u64>,
    /// Sorted.
    pub(super) reactions: Vec<Duration>,
    /// How many pods it ran to their end, where that is what it is about.
    pub(super) pods: Option<u32>,
}

impl Figures {
    /// The costs of this part of a step and the `next`.
    fn and(mut self, next: Self) -> Self {
        for (name, usage) in next.each {
            let cpu = self.each.get(&name).map_or(Duration::ZERO, |before| before.cpu);
            self.each.insert(name, Usage { cpu: cpu + usage.cpu, ..usage });
        }
        for (verb, count) in next.requests {
            *self.requests.entry(verb).or_default() += count;
        }
        self.reactions.extend(next.reactions);
        self.reactions.sort_unstable();
        Self {
            took: self.took + next.took,
            cpu: self.cpu + next.cpu,
            apiserver_cpu: self.apiserver_cpu + next.apiserver_cpu,
            others_cpu: self.others_cpu + next.others_cpu,
            peak_bytes: self.peak_bytes.max(next.peak_bytes),
            resident_bytes: next.resident_bytes,
            anonymous_bytes: next.anonymous_bytes,
            watches: next.watches,
            sent_bytes: self.sent_bytes + next.sent_bytes,
            allocated_bytes: self.allocated_bytes + next.allocated_bytes,
            pods: self.pods.zip(next.pods).map(|(before, pods)| before + pods),
            ..self
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [took, cpu, apiserver_cpu, others_cpu] =
            [self.took, self.cpu, self.apiserver_cpu, self.others_cpu].map(|it| it.as_secs_f64());
        let allocated = self.allocated_bytes / 1e6;
        let [peak, resident, anonymous] =
            [self.peak_bytes, self.resident_bytes, self.anonymous_bytes].map(|it| it >> 20);
        write!(
            f,
            "{took:.2} s, {cpu:.2} s CPU ({apiserver_cpu:.2} s and {allocated:.0} MB the apiserver's, \
             {others_cpu:.2} s the scheduler's and kwok's), peak {peak} MiB, resident {resident} MiB, anonymous {anonymous} MiB, \
             {} watches, {:?}",
            self.watches, self.requests
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
    /// How many watches others have open.
    others: f64,
    turn: Turn<'a>,
    measured: Vec<Measured>,
}

impl<'a> Bench<'a> {
    pub(super) async fn new(
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

    fn contestant(&self) -> Contestant {
        self.running.contestant()
    }

    pub(super) fn into_measured(self) -> Vec<Measured> {
        self.measured
    }

    /// Measures a step: `work` from its beginning until what it waits for.
    async fn measure(&mut self, step: &'static str, work: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let figures = self.figures(work).await.context(step)?;
        self.keep(step, figures).await;
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
        self.keep(step, Figures { pods: Some(pods), ..figures }).await;
        Ok(())
    }

    /// Measures a long step in parts, and lets the others have their turns in between: a machine's speed changes within
    /// minutes, and would be what is compared. What a part leaves to be done falls into another's turn, so each part ends
    /// when nothing is left.
    async fn measure_parts<P>(
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
    async fn measure_rest(&mut self, step: &'static str, time: Duration) -> Result<()> {
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

    /// Whether one of these steps is asked for.
    fn wants(&self, steps: &[&str]) -> bool {
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
        Progress::default().finish(&format!("  {step}: {}: {figures}", self.contestant()));
    }

    /// Starts the contestant.
    async fn begin(&mut self) -> Result<()> {
        self.running.begin(self.cluster).await
    }

    /// Waits until all of the contestant's processes are ready, and each Lease has somebody.
    async fn wait_ready(&mut self) -> Result<()> {
        self.running.wait_ready(self.cluster).await?;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-system");
        self.wait_until("led", async || {
            let all = leases.list(&ListParams::default()).await?;
            let holder = |lease: Lease| lease.spec?.holder_identity.filter(|holder| !holder.is_empty());
            Ok(all.items.into_iter().all(|lease| holder(lease).is_some()))
        })
        .await
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

    /// Pods need a ServiceAccount, and not every contestant makes one.
    async fn create_namespace(&self, name: &str) -> Result<()> {
        create::<Namespace>(&Api::all(self.client.clone()), json!({"metadata": {"name": name}})).await?;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        apply(&self.client, name, &account).await.map(drop)
    }

    async fn patch<K>(&self, name: &str, patch: &Value) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
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

    /// How many there are of a kind.
    async fn count<K>(&self) -> Result<i64>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        count(&self.api::<K>()).await
    }

    /// All pods run: work that nodes still have to do would be done within the step.
    async fn wait_running(&self) -> Result<()> {
        self.wait_until("running", async || {
            let pods = self.api::<Pod>().list(&ListParams::default()).await?.items;
            let is_running =
                |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
            Ok(pods.iter().all(is_running))
        })
        .await
    }

    async fn wait_none<K>(&self) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.wait_until("gone", async || Ok(self.count::<K>().await? == 0)).await
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

/// The CPU time of each process since `before`; its memory is that of now.
fn spent(before: &BTreeMap<String, Usage>, mut after: BTreeMap<String, Usage>) -> BTreeMap<String, Usage> {
    for (name, usage) in &mut after {
        usage.cpu = usage.cpu.saturating_sub(before.get(name).map_or(Duration::ZERO, |usage| usage.cpu));
    }
    after
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(object).context("describe an object")?;
    Ok(api.create(&PostParams::default(), &object).await?)
}

/// How many there are of these. Asking for all of them again and again would be work that counts in the time.
async fn count<K>(objects: &Api<K>) -> Result<i64>
where
    K: Clone + Debug + DeserializeOwned,
{
    let first = objects.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(i64::try_from(first.items.len())?.saturating_add(first.metadata.remaining_item_count.unwrap_or(0)))
}

/// Does `one` for 0 up to `count`, some at a time.
async fn in_parallel(count: u32, one: impl AsyncFn(u32) -> Result<()>) -> Result<()> {
    stream::iter(0..count).map(|at| one(at)).buffer_unordered(PARALLEL).try_collect().await
}

fn small(at: u32) -> String {
    format!("small{at:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(seconds: u64, memory: u64) -> Figures {
        let time = Duration::from_secs(seconds);
        Figures {
            took: time,
            cpu: time,
            apiserver_cpu: time,
            others_cpu: time,
            peak_bytes: memory,
            resident_bytes: memory,
            anonymous_bytes: memory,
            watches: whole(memory),
            sent_bytes: whole(seconds),
            allocated_bytes: whole(seconds),
            each: BTreeMap::from([("job-operator".to_owned(), Usage { cpu: time, pss: memory, ..Usage::default() })]),
            requests: BTreeMap::from([("create".to_owned(), seconds), (format!("patch {memory}"), 1)]),
            reactions: vec![time],
            pods: Some(2),
        }
    }

    #[test]
    fn the_costs_of_parts_add_up_and_what_is_held_is_as_in_the_last() {
        let (long, short) = (Duration::from_secs(3), Duration::from_secs(2));
        let both = part(3, 9).and(part(2, 4));
        assert_eq!([both.took, both.cpu, both.apiserver_cpu, both.others_cpu], [long + short; 4], "{both}");
        assert_eq!((both.sent_bytes, both.allocated_bytes), (5.0, 5.0));
        assert_eq!((both.peak_bytes, both.resident_bytes, both.anonymous_bytes, both.watches), (9, 4, 4, 4.0));
        let used = Usage { cpu: long + short, pss: 4, ..Usage::default() };
        assert_eq!(both.each, BTreeMap::from([("job-operator".to_owned(), used)]));
        let requests = [("create", 5), ("patch 4", 1), ("patch 9", 1)];
        assert_eq!(both.requests, requests.map(|(verb, count)| (verb.to_owned(), count)).into());
        assert_eq!((both.reactions, both.pods), (vec![short, long], Some(4)));
    }
}
