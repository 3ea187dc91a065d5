//! An operator's `main`: flags, client, health, informers, leadership, workers, and an orderly end.
//!
//! Every replica keeps its caches warm; only the leader works. Left out: what is watched and synced, which the
//! operator's `controller.rs` says in [`Operator::set_up`].

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures::future::BoxFuture;

use crate::client::Client;
use crate::clock::Clock;
use crate::control::Control;
use crate::decisions::Decisions;
use crate::events::Recorder;
use crate::informer::{Health, Informer};
use crate::object::Object;
use crate::queue::{Backoff, Queue};
use crate::worker::{self, Controller};

/// The names of one operator. Upstream has three for each controller, and they disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The binary, image, manifest folder and Lease: `deployment-operator`.
    pub operator: &'static str,
    /// Upstream's canonical name: `deployment-controller`.
    pub controller: &'static str,
    /// The component that events come from: `deployment-controller`.
    pub event_source: &'static str,
}

/// One operator, as a process sees it.
pub trait Operator {
    /// Its names.
    const NAMES: Names;
    /// Its flags.
    type Flags;

    /// Declares informers, queues and workers; starts nothing.
    fn set_up(flags: &Self::Flags, setup: &mut Setup);
}

/// What an operator declares before anything starts.
pub struct Setup {
    client: Client,
    clock: Clock,
    recorder: Recorder,
    decisions: Decisions,
    panics: Arc<AtomicU64>,
    informers: Vec<BoxFuture<'static, ()>>,
    healths: Vec<Arc<Health>>,
    queues: Vec<Queue>,
    workers: Vec<BoxFuture<'static, ()>>,
}

impl Setup {
    /// The writer.
    pub fn control(&self) -> Control {
        Control::new(self.client.clone())
    }

    /// The event recorder, under the operator's event source.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// The wall clock.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Where syncs note what they decided.
    pub fn decisions(&self) -> Decisions {
        self.decisions.clone()
    }

    /// A queue; `name` is upstream's, as in the metrics.
    pub fn queue(&mut self, name: &'static str, backoff: Backoff) -> Queue {
        let queue = Queue::new(name, backoff, None);
        self.queues.push(queue.clone());
        queue
    }

    /// Follows a resource from start to end, on every replica. Workers start once all caches are synced.
    pub fn watch<T: Object>(&mut self, informer: Informer<T>) {
        self.healths.push(informer.health());
        self.informers.push(Box::pin(informer.run(self.client.clone())));
    }

    /// Syncs the keys of `queue`, `workers` at a time, while this replica leads.
    pub fn work<C: Controller>(&mut self, controller: Arc<C>, queue: &Queue, workers: usize) {
        self.workers.push(Box::pin(worker::run(controller, queue.clone(), workers, Arc::clone(&self.panics))));
    }
}
