//! Wiring, and one sync from observation to finalization.
//!
//! Left out: which change leads to a sync, which is `changes`'.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, Reasoned, stage};
use shared::runtime::informer::Feeder;
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::Namespace;
use crate::observe::{Caches, live_served, observe};
use crate::plan::{Next, Pass, Plan, next_step, pass, plan, plan_content};
use crate::status::next_status;
use changes::namespace_changed;

/// Upstream's, but for the 60 s at most: no operator waits longer than 30 s.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), max: Duration::from_secs(30) };

/// The operator as a process.
pub struct NamespaceOperator;

impl Operator for NamespaceOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, BACKOFF);
        let (caches, mut informers) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        informers.namespaces.on_change(effects.of(&caches, |_, change| namespace_changed(change)));
        setup.watch(informers.namespaces);
        let controller = NamespaceController {
            caches,
            feeder: setup.feeder(),
            writer: Writer { control: setup.control(&queue), clock: setup.clock() },
            sync_period: flags.namespace_sync_period.0,
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_namespace_syncs);
    }
}

/// Empties namespaces.
struct NamespaceController {
    caches: Arc<Caches>,
    feeder: Feeder,
    writer: Writer,
    sync_period: Duration,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for NamespaceController {
    /// Upstream: `syncNamespaceFromKey`, `pkg/controller/namespace/namespace_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(due) = self.pass(key) else { return Ok(Requeue::Done) };
        if !due.is_due() {
            self.record(key, &due);
            return Ok(Requeue::Done);
        }
        let Some(mut observed) = observe(&self.writer.control, key).await? else {
            return Ok(Requeue::Done);
        };
        let planned = plan(&observed);
        self.record(key, &planned);
        let Plan::Empty { phase, since } = planned else { return Ok(Requeue::Done) };
        if let Some(body) = phase
            && !self.writer.write_status(&mut observed, body).await?
        {
            return Ok(Requeue::Done);
        }

        let content = plan_content(live_served(&self.feeder).await, since);
        self.record(key, &content);
        let outcome = self.writer.apply(&observed, content).await;
        if let Some(body) = next_status(&observed, &outcome, self.clock.now()) {
            match self.writer.write_status(&mut observed, body).await {
                Ok(true) => {}
                Ok(false) => return Ok(Requeue::Done),
                Err(error) if ApiError::is_shadows(&error) => {}
                // The next round writes it.
                Err(error) => tracing::warn!(%key, error = format!("{error:#}"), "cannot write the conditions"),
            }
        }

        let next = next_step(&observed, &outcome, self.sync_period);
        self.record(key, &next);
        match next {
            Next::Finalize { body, kept: _ } => self.writer.finalize(&observed, &body).await.map(|()| Requeue::Done),
            Next::After(delay, _) => Ok(Requeue::After(delay, "the end of what remains in it")),
            Next::Failed { errors, reason: _ } => bail!(errors.join("; ")),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&Namespace::RESOURCE)
    }

    /// All but the question whether it is due is asked live.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.pass(key).iter().map(stage).collect()
    }
}

impl NamespaceController {
    /// The cached namespace; none if it is gone or not being deleted.
    fn pass(&self, key: &Key) -> Option<Pass> {
        self.caches.namespaces.get(key).map(|namespace| pass(&namespace))
    }

    /// Each decision is a stage of the record of its sync.
    fn record(&self, key: &Key, stage: &impl Reasoned) {
        self.decisions.record(self.clock.now(), key, stage);
    }
}
