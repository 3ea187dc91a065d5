//! `--mode=shadow`: the process decides everything and writes nothing, beside the controller that does the work.
//!
//! The client refuses each write, and a sync cannot tell that from any other refusal; everything else runs as usual.
//! The shadow notes the first refused write of a sync, and the other writes of the same stage that do not follow from
//! it. A write that a key still wants after its object has come to rest is a difference.

mod fields;
mod metrics;
mod pending;
mod write;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::api::explain::{Difference, ShadowReport, Stage, Subject};
use crate::api::object::Key;
use crate::process::flags::Mode;
use crate::process::metrics::Metrics;
use crate::transport::api_error::ApiError;
use crate::transport::client::{Call, Client, Gate};
use crate::transport::clock::Clock;
use crate::transport::identity::VERSION;
use crate::working::queue::Queue;
use crate::working::worker::{Controller, Requeue};
use metrics::ShadowMetrics;
use pending::PendingWrites;
use write::Write;

/// This many writes of one sync are noted; the others are counted.
const OF_SYNC_MAX: usize = 16;

tokio::task_local! {
    static SYNC: RefCell<Watched>;
}

#[derive(Default)]
struct Watched {
    queue: &'static str,
    key: Option<Key>,
    stages: Vec<Stage>,
    /// How many stages were decided when the first write was refused.
    refused_at: Option<usize>,
    wanted: Vec<Write>,
    more: u64,
}

/// Notes a stage of the running sync, if it is of this key and a shadow runs it.
pub(crate) fn decided(queue: &'static str, key: &Key, stage: &dyn Fn() -> Stage) {
    // Outside a shadow nothing is noted.
    let _ = SYNC.try_with(|sync| {
        let mut sync = sync.borrow_mut();
        if (sync.queue, &sync.key) == (queue, &Some(key.clone())) {
            sync.stages.push(stage());
        }
    });
}

/// Refuses each request that may change something, and notes it with the running sync.
struct NoWrites;

impl Gate for NoWrites {
    fn check(&self, call: &Call<'_>) -> Result<(), ApiError> {
        let Call { method, path, content_type, body, .. } = call;
        if !write::is_write(method, path) {
            return Ok(());
        }
        // A write outside a sync, such as an Event, belongs to no key.
        let write = || Write::read(method, path, content_type.as_ref(), body);
        let _ = SYNC.try_with(|sync| sync.borrow_mut().refuse(write()));
        Err(ApiError::Shadow)
    }
}

impl Watched {
    /// Writes that follow from a refusal do not count: those of a later stage, and a status after a write of the
    /// object.
    fn refuse(&mut self, write: Write) {
        let stage = *self.refused_at.get_or_insert(self.stages.len());
        let of_object = |write: &Write| write.subresource.is_empty();
        let follows = stage != self.stages.len()
            || self.wanted.first().is_some_and(|first| of_object(first) && !of_object(&write));
        if follows || self.wanted.iter().any(|wanted| wanted.target == write.target) {
            return;
        }
        if self.wanted.len() < OF_SYNC_MAX { self.wanted.push(write) } else { self.more += 1 }
    }
}

/// A list of objects with every field they have.
#[derive(Deserialize)]
struct Listed {
    items: Vec<Value>,
}

/// A process that decides and never writes; cheap to clone.
#[derive(Clone)]
pub struct Shadow {
    operator: &'static str,
    client: Client,
    clock: Clock,
    metrics: ShadowMetrics,
    pending: Arc<Mutex<PendingWrites>>,
}

impl Shadow {
    /// A shadow if `--mode` says so, and the client of the process.
    pub(crate) fn of_mode(
        operator: &'static str,
        mode: Mode,
        client: Client,
        clock: &Clock,
        metrics: &Metrics,
    ) -> (Option<Self>, Client) {
        if mode == Mode::Operate {
            return (None, client);
        }
        let (client, pending) = (client.behind(NoWrites), Arc::default());
        let metrics = ShadowMetrics::register(metrics, Arc::clone(&pending));
        let clock = clock.clone();
        (Some(Self { operator, client: client.clone(), clock, metrics, pending }), client)
    }

    fn pending(&self) -> MutexGuard<'_, PendingWrites> {
        lock(&self.pending)
    }

    /// Notes the keys of all queues, once these are filled.
    pub(crate) fn started(&self, queues: &[Queue]) {
        let keys = queues.iter().flat_map(|queue| queue.waiting().into_iter().map(|key| (queue.name(), key)));
        self.pending().start(keys);
    }

    /// Wraps a controller: a sync with a refused write counts as done, and its key is synced again when its object may
    /// have come to rest.
    pub(crate) fn controller<C: Controller>(&self, controller: Arc<C>, queue: &Queue) -> Shadowed<C> {
        Shadowed { controller, shadow: self.clone(), queue: queue.clone() }
    }

    async fn note(&self, queue: &'static str, key: &Key, watched: Watched) -> Option<Duration> {
        let Watched { stages, refused_at, wanted, more, .. } = watched;
        let subject = (queue, key.clone());
        let targets: BTreeSet<_> = wanted.iter().map(|write| write.target.clone()).collect();
        let synced = self.pending().synced(&subject, (Instant::now(), self.clock.now()), &targets, more);
        for (target, after) in &synced.fulfilled {
            self.metrics.fulfilled(target, *after);
        }
        let stages: Vec<Stage> = stages.into_iter().take(refused_at.unwrap_or_default()).collect();
        let mut live = BTreeMap::new();
        for (target, since) in synced.resting {
            let Some(write) = wanted.iter().find(|write| write.target == target) else { continue };
            if write.changes_an_object() && !live.contains_key(&write.object_path) {
                live.insert(write.object_path.clone(), self.read(&write.object_path).await);
            }
            let object = live.get(&write.object_path).unwrap_or(&Value::Null);
            let difference = Difference {
                queue: queue.to_owned(),
                key: key.to_string(),
                verb: target.verb.to_owned(),
                resource: target.resource.clone(),
                object: target.object.clone(),
                stages: stages.clone(),
                fields: fields::differences(write, object),
                since,
            };
            self.pending().found(&subject, &target, difference);
        }
        synced.look
    }

    /// The object as it is now; `None` if it cannot be read. It is read by a list of one, because roles often allow no
    /// get.
    async fn read(&self, path: &str) -> Value {
        let (collection, name) = path.rsplit_once('/').unwrap_or_default();
        let path = format!("{collection}?fieldSelector=metadata.name%3D{name}");
        match self.client.get::<Listed>(&path).await {
            Ok(Listed { mut items }) => items.pop().unwrap_or_default(),
            Err(error) => {
                tracing::debug!(path, %error, "cannot read what a write would change");
                Value::Null
            }
        }
    }

    pub fn report(&self) -> ShadowReport {
        let pending = self.pending();
        let looked_at = pending.looked_at().into_iter().map(|(queue, keys)| (queue.to_owned(), keys));
        ShadowReport {
            operator: self.operator.to_owned(),
            version: VERSION.to_owned(),
            time: self.clock.now(),
            complete: pending.is_complete(),
            looked_at: looked_at.collect(),
            moving: pending.moving().into_values().sum(),
            differences: pending.differences().cloned().collect(),
            more_differences: pending.counts().1,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        // A report is made of texts, numbers and times: JSON has a form for each.
        serde_json::to_string(&self.report()).unwrap_or_default()
    }
}

/// A controller whose syncs are watched.
pub(crate) struct Shadowed<C> {
    controller: Arc<C>,
    shadow: Shadow,
    queue: Queue,
}

impl<C: Controller> Controller for Shadowed<C> {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Self { controller, shadow, queue } = self;
        let watched = Watched { queue: queue.name(), key: Some(key.clone()), ..Watched::default() };
        let ends = async { (controller.sync(key).await, SYNC.with(RefCell::take)) };
        let (outcome, watched) = SYNC.scope(RefCell::new(watched), ends).await;
        let is_refused = watched.refused_at.is_some();
        if !is_refused && outcome.is_err() {
            // The sync failed before any write, so its writes are not known.
            return outcome;
        }
        let look = shadow.note(queue.name(), key, watched).await;
        if is_refused { Ok(look_again(outcome.ok(), look)) } else { outcome }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        self.controller.key_of(object)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.controller.preview(key)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When to sync a key with a refused write again. The refusal is no failure, so the key does not back off.
fn look_again(requeue: Option<Requeue>, look: Option<Duration>) -> Requeue {
    let timer = match requeue {
        Some(Requeue::After(delay, purpose)) => Some((delay, purpose)),
        Some(Requeue::Done | Requeue::Rest(_) | Requeue::Partly(_) | Requeue::RateLimited) | None => None,
    };
    Requeue::earliest([timer, look.map(|delay| (delay, "what others write meanwhile"))])
}

#[cfg(test)]
mod tests;
