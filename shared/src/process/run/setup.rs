//! The declarations of an operator before anything starts: informers, queues and workers.
//!
//! Left out: starting any of it.

use std::collections::BTreeMap;
use std::mem::replace;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::sync::watch::Receiver;

use super::restore::OnRestore;
use crate::api::facts::Names;
use crate::api::object::{Kind, Object};
use crate::api::resource::Resource;
use crate::following::cache::Progress;
use crate::following::demand::{Demand, Extent};
use crate::following::followed::Followed;
use crate::following::informer::{Feeder, Informer, Need, Watches};
use crate::following::served::Served;
use crate::following::source::Follow;
use crate::process::explain::KeyExplainer;
use crate::process::flags::SharedFlags;
use crate::process::leader::Term;
use crate::process::metrics::{Metrics, StaleSyncSkips};
use crate::process::serving::{Checks, Page, Probe, Query};
use crate::process::shadow::{self, Shadow};
use crate::transport::client::Client;
use crate::transport::clock::Clock;
use crate::working::consistency::{Consistency, Watched};
use crate::working::context::ControllerContext;
use crate::working::control::Control;
use crate::working::decisions::Decisions;
use crate::working::effect::Effects;
use crate::working::events::{Events, Recorder};
use crate::working::expectations::Expectations;
use crate::working::queue::{Backoff, Queue};
use crate::working::worker::{Controller, OnHeld, Syncing, Work};

/// The declarations of an operator before anything starts.
pub struct Setup {
    pub(super) flags: SharedFlags,
    pub(super) client: Client,
    pub(super) watches: Watches,
    pub(super) shadow: Option<Shadow>,
    pub(super) term: Option<Term>,
    pub(super) clock: Clock,
    pub(super) recorder: Recorder,
    pub(super) decisions: Decisions,
    pub(super) metrics: Metrics,
    pub(super) checks: Checks,
    pub(super) panics: Arc<AtomicU64>,
    pub(super) informers: Vec<BoxFuture<'static, anyhow::Result<()>>>,
    pub(super) progress: Vec<Receiver<Progress>>,
    pub(super) followed: Followed,
    pub(super) on_restore: Vec<OnRestore>,
    pub(super) queues: Vec<Queue>,
    pub(super) syncing: Syncing,
    pub(super) watched: Watched,
    pub(super) consistency: BTreeMap<&'static str, Arc<Consistency>>,
    pub(super) expectations: BTreeMap<&'static str, Arc<Expectations>>,
    pub(super) starters: Vec<Starter>,
    pub(super) on_held: BTreeMap<&'static str, OnHeld>,
    pub(super) workers: Vec<BoxFuture<'static, ()>>,
    pub(super) explainers: Vec<KeyExplainer>,
    pub(super) pages: Vec<(&'static str, Arc<Page>)>,
}

/// A function that is called once, when work starts.
pub(super) type Starter = Box<dyn FnOnce() + Send>;

impl Setup {
    pub(super) fn new(
        names: Names,
        flags: &SharedFlags,
        client: Client,
        clock: Clock,
        metrics: Metrics,
        events: &Events,
    ) -> Self {
        let (shadow, client) = Shadow::of_mode(names.operator, flags.mode, client, &clock, &metrics);
        let mut starters: Vec<Starter> = Vec::new();
        let decisions = if shadow.is_some() { Decisions::observed(shadow::decided) } else { Decisions::default() };
        // A recorder is silent before work starts, and for a shadow it never does.
        if shadow.is_none() {
            starters.push(Box::new(events.starter()));
        }
        Self {
            flags: flags.clone(),
            watches: client.clone().into(),
            client,
            shadow,
            term: None,
            clock,
            recorder: events.recorder(names.event_source),
            decisions,
            metrics,
            checks: Checks::default(),
            panics: Arc::default(),
            informers: Vec::new(),
            progress: Vec::new(),
            followed: Followed::default(),
            on_restore: Vec::new(),
            queues: Vec::new(),
            syncing: Syncing::default(),
            watched: Watched::default(),
            consistency: BTreeMap::new(),
            expectations: BTreeMap::new(),
            starters,
            on_held: BTreeMap::new(),
            workers: Vec::new(),
            explainers: Vec::new(),
            pages: Vec::new(),
        }
    }

    pub fn flags(&self) -> &SharedFlags {
        &self.flags
    }

    /// Clock, writes, decisions and events for the syncs of this queue.
    pub fn context(&mut self, queue: &Queue) -> ControllerContext {
        ControllerContext::new(self.control(queue), self.clock(), self.recorder(), self.decisions(queue))
    }

    /// Reads and writes for the syncs of this queue; writes nothing while another replica may be at work. A key of the
    /// queue is not synced again before what is followed has seen the key's last writes.
    pub(crate) fn control(&mut self, queue: &Queue) -> Control {
        let client = self.term.clone().map_or_else(|| self.client.clone(), |term| self.client.behind(term));
        let consistency = self.consistency(queue);
        Control::new(client, consistency, self.decisions(queue))
    }

    fn consistency(&mut self, queue: &Queue) -> Arc<Consistency> {
        let none = || Arc::new(Consistency::new(self.client.clone(), self.watched.clone()));
        Arc::clone(self.consistency.entry(queue.name()).or_insert_with(none))
    }

    /// The expectations of the syncs of this queue. After a restore of etcd they start over.
    pub fn expectations(&mut self, queue: &Queue) -> Arc<Expectations> {
        if let Some(known) = self.expectations.get(queue.name()) {
            return Arc::clone(known);
        }
        let expectations = Arc::new(Expectations::new());
        self.expectations.insert(queue.name(), Arc::clone(&expectations));
        let forgetting = Arc::clone(&expectations);
        self.on_restore(move || forgetting.start_over());
        expectations
    }

    pub fn effects(&mut self, queue: &Queue) -> Effects {
        Effects::new(queue.clone(), self.control(queue), self.expectations(queue))
    }

    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Calls this when a key of the queue is held, with the resource whose cache has not seen the key's own writes.
    pub fn on_held(&mut self, queue: &Queue, held: impl Fn(&str) + Send + Sync + 'static) {
        self.on_held.insert(queue.name(), Box::new(held));
    }

    /// Counts the held keys of the queue; `name` and `help` are upstream's.
    pub fn count_held(&mut self, queue: &Queue, name: &'static str, help: &'static str) {
        let skips = StaleSyncSkips::register(&self.metrics, name, help);
        self.on_held(queue, move |resource| skips.count(resource));
    }

    /// Where the syncs of a queue note what they decided.
    pub(crate) fn decisions(&self, queue: &Queue) -> Decisions {
        self.decisions.of_queue(queue.name())
    }

    /// A queue; `name` is upstream's, as in the metrics.
    pub fn queue(&mut self, name: &'static str, backoff: Backoff) -> Queue {
        let queue = Queue::new(name, backoff, Some(Box::new(self.metrics.queue(name))));
        self.metrics.watch_queue(&queue);
        self.queues.push(queue.clone());
        queue
    }

    /// Follows a resource from start to end, on every replica. Workers start once all caches are synced.
    pub fn watch<T: Object>(&mut self, informer: Informer<T>) {
        let follow = informer.follow();
        self.watched.add(follow.clone());
        let check = format!("informer-sync/{}", informer.health().resource);
        self.checks.add(&[Probe::Readyz], check, move || synced(&follow));
        self.progress.push(informer.cache().subscribe());
        self.followed.add(informer.collection());
        let (following, starter) = informer.run(self.watches.clone());
        self.informers.push(Box::pin(following.map(Ok)));
        self.at_start(starter);
    }

    /// Follows all of a resource while an object needs it, on every replica, and some minutes longer. A key is not
    /// synced while something is needed that was not listed yet.
    pub fn watch_while<T: Object>(&mut self, informer: Informer<T>, need: &Need) {
        self.watch_on_demand(informer, &[(need, Extent::Cluster)]);
    }

    /// As [`Self::watch_while`], in the namespaces of the objects that need it; a key of one of them waits for that
    /// namespace only.
    pub fn watch_beside<T: Object>(&mut self, informer: Informer<T>, need: &Need) {
        self.watch_on_demand(informer, &[(need, Extent::Namespaces)]);
    }

    /// As [`Self::watch_while`], and in the namespaces of the objects that need it `whole`, whatever the informer's
    /// selectors say. Both fill one cache: an object is there while either sees it, and handlers are told once.
    pub fn watch_while_and_beside<T: Object>(&mut self, informer: Informer<T>, need: &Need, whole: &Need) {
        self.watch_on_demand(informer, &[(need, Extent::Cluster), (whole, Extent::WholeNamespaces)]);
    }

    /// As [`Self::watch_while`], of pods only those of the nodes that need it ([`Informer::need_by_name`]); of all nodes
    /// where these are many. The key of a node waits for that node only.
    pub fn watch_on_nodes<T: Object>(&mut self, informer: Informer<T>, need: &Need) {
        self.watch_on_demand(informer, &[(need, Extent::Nodes)]);
    }

    /// As [`Self::watch_while`], for each object that needs it ([`Informer::need_by_name`]) only what a field selector
    /// selects: `start` with the object's name at its end. Where these objects are many, all of the resource. The key of
    /// such an object waits for what is its own; keys with a namespace wait for nothing.
    pub fn watch_selected<T: Object>(&mut self, informer: Informer<T>, need: &Need, start: &'static str) {
        self.watch_on_demand(informer, &[(need, Extent::Selected(start))]);
    }

    /// Follows all of a resource while the apiserver serves it, which few clusters turn on.
    pub fn watch_while_served<T: Kind>(&mut self, informer: Informer<T>) {
        self.watch_as_served(informer, |_| {});
    }

    /// As [`Self::watch_while_served`], and calls this as [`Self::when_served`] does.
    pub fn watch_as_served<T: Kind>(
        &mut self,
        informer: Informer<T>,
        mut follow: impl FnMut(Option<&Resource>) + Send + 'static,
    ) {
        let (need, mut held) = (Need::default(), None);
        self.watch_while(informer, &need);
        self.when_served(T::RESOURCE, move |served| {
            drop(replace(&mut held, served.map(|_| need.hold(""))));
            follow(served);
        });
    }

    /// Asks for a resource in the version that the apiserver serves, and calls this on every replica before work starts and
    /// at each change: with the resource in that version, or with none.
    pub fn when_served(&mut self, resource: Resource, follow: impl FnMut(Option<&Resource>) + Send + 'static) {
        let check = format!("served/{resource}");
        let (served, ready) = Served::new(self.client.clone(), resource, follow);
        self.run(check, ready, served.run());
    }

    fn watch_on_demand<T: Object>(&mut self, informer: Informer<T>, wanted: &[(&Need, Extent)]) {
        let resource = informer.health().resource.clone();
        let demands: Vec<_> =
            wanted.iter().map(|(need, extent)| Demand::new(resource.clone(), need, *extent)).collect();
        let (checked, check) = (demands.clone(), format!("informer-sync/{resource}"));
        self.checks.add(&[Probe::Readyz], check, move || checked.iter().try_for_each(Demand::check));
        for demand in &demands {
            self.watched.add_demand(demand.clone());
            self.followed.add_demand(demand.clone());
        }
        let (following, starter) = informer.run_on_demand(demands, &self.watches, &self.watched);
        self.informers.push(Box::pin(following));
        self.at_start(starter);
    }

    /// To discover resources and to start and stop following them while the operator runs.
    /// A resource that cannot be followed is noted by `/readyz`, and fails nothing.
    pub fn feeder(&mut self) -> Feeder {
        let (broken, mut reports) = mpsc::unbounded_channel();
        let feeder = Feeder::new(self.watches.clone(), broken);
        self.informers.push(Box::pin(async move { reports.recv().await.map_or(Ok(()), Err) }));
        self.followed.add_feeder(feeder.clone());
        let feeds = feeder.clone();
        self.checks.add_note(&[Probe::Readyz], "feeds", move || feeds.failing());
        feeder
    }

    /// Serves a page of the operator's own to clients that may GET its path. Each piece is made after the client has read
    /// the ones before it, so a long page needs no more memory than a short one.
    pub fn page<P: Iterator<Item = String> + Send + 'static>(
        &mut self,
        path: &'static str,
        content_type: &'static str,
        read: impl Fn(&Query) -> P + Send + Sync + 'static,
    ) {
        self.pages.push((path, Arc::new(Page::in_pieces(content_type, read))));
    }

    /// Runs a task from start to end, on every replica. Workers start once `ready` says synced; until then `/readyz`
    /// fails under this name.
    pub fn run(
        &mut self,
        name: impl Into<String>,
        ready: Receiver<Progress>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let is_ready = ready.clone();
        let check = move || if is_ready.borrow().synced { Ok(()) } else { Err("not ready yet".to_owned()) };
        self.checks.add(&[Probe::Readyz], name, check);
        self.progress.push(ready);
        self.informers.push(Box::pin(task.map(Ok)));
    }

    /// Calls this after etcd was restored from a backup, once the caches have listed everything anew and before any key is
    /// synced: what is remembered of versions and of objects under way belongs to a history that is no more.
    pub fn on_restore(&mut self, forget: impl Fn() + Send + Sync + 'static) {
        self.on_restore.push(Box::new(forget));
    }

    /// Calls this once, when work starts: from then on queues take keys, and this adds those of what is there already.
    /// Informers do so by themselves.
    pub fn at_start(&mut self, starter: impl FnOnce() + Send + 'static) {
        self.starters.push(Box::new(starter));
    }

    /// Syncs the keys of `queue`, `workers` at a time, while this replica leads.
    pub fn work<C: Controller>(&mut self, controller: Arc<C>, queue: &Queue, workers: usize) {
        let (consistency, decisions) = (self.consistency(queue), self.decisions(queue));
        let (explained, noted) = (Arc::clone(&controller), decisions.clone());
        self.explainers.push(KeyExplainer::new(explained, queue.clone(), Arc::clone(&consistency), noted));
        let on_held = self.on_held.remove(queue.name());
        let (queue, clock, panics) = (queue.clone(), self.clock(), Arc::clone(&self.panics));
        let syncing = Arc::clone(&self.syncing);
        let work: BoxFuture<'static, ()> = match self.shadow.clone() {
            None => {
                let work = Work { controller, queue, syncing, consistency, on_held, decisions, clock, panics };
                Box::pin(work.run(workers))
            }
            Some(shadow) => {
                let controller = Arc::new(shadow.controller(controller, &queue));
                let work = Work { controller, queue, syncing, consistency, on_held, decisions, clock, panics };
                Box::pin(work.run(workers))
            }
        };
        self.workers.push(work);
    }

    pub(super) fn declare(&mut self, declare: impl FnOnce(&mut Self)) {
        declare(self);
        self.metrics.watch_informers(self.followed.clone());
        let (queues, syncing) = (self.queues.clone(), Arc::clone(&self.syncing));
        self.checks.add(&[Probe::Livez, Probe::Healthz], "workers", move || check_workers(&queues, &syncing));
        if let Some(shadow) = self.shadow.clone() {
            let queues = self.queues.clone();
            // Last, because the queues have all keys by then.
            self.at_start(move || shadow.started(&queues));
        }
    }
}

/// Longer than any sync takes. Each request has a deadline; the longest syncs make several calls of a slow cloud, of up
/// to five minutes each.
const STALLED: Duration = Duration::from_mins(20);

/// Fails if keys wait and no sync ends. While no sync may begin, keys wait for the apiserver.
fn check_workers(queues: &[Queue], syncing: &Syncing) -> Result<(), String> {
    let stalled = queues.iter().find(|queue| queue.stalled() >= STALLED).filter(|_| syncing.try_read().is_ok());
    stalled.map_or(Ok(()), |queue| {
        let (name, seconds) = (queue.name(), queue.stalled().as_secs());
        Err(format!("keys of the queue {name} wait, and no sync has ended for {seconds} s"))
    })
}

/// Whether an informer has listed; afterwards a watch that fails for a while is no reason to take a replica away.
fn synced(follow: &Follow) -> Result<(), String> {
    let Follow { progress, health, .. } = follow;
    if progress.borrow().synced {
        return Ok(());
    }
    Err(health.failing().unwrap_or_else(|| "not listed yet".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::object::Key;
    use crate::working::queue::Cause;

    #[tokio::test(start_paused = true)]
    async fn workers_fail_their_check_when_keys_wait_and_no_sync_ends() {
        let (queue, syncing) = (Queue::new("test", Backoff::default(), None), Syncing::default());
        let queues = [queue.clone()];
        Queue::start(&queues, || {});
        for name in ["hangs", "waits"] {
            queue.add(&Key::new("ns", name), Cause::Event);
        }
        queue.next().await.unwrap();
        tokio::time::advance(Duration::from_secs(1199)).await;
        assert_eq!(check_workers(&queues, &syncing), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        let expected = "keys of the queue test wait, and no sync has ended for 1200 s".to_owned();
        assert_eq!(check_workers(&queues, &syncing), Err(expected));
        let _none_syncs = syncing.write().await;
        assert_eq!(check_workers(&queues, &syncing), Ok(()), "everything is listed again");
    }
}
