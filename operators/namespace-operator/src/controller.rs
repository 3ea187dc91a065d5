//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::following::informer::Feeder;
use shared::process::run::{Names, Operator, Setup};
use shared::transport::api_error::ApiError;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::Namespace;
use crate::observe::{Caches, Informers, live_served, observe};
use crate::plan::{Next, Pass, Plan, next_step, pass, plan, plan_content};
use crate::status::next_status;

/// Upstream's, except for its maximum of 60 s: no operator waits longer than 30 s.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), max: Duration::from_secs(30) };

pub struct NamespaceOperator;

impl Operator for NamespaceOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, BACKOFF);
        let ctx = setup.context(&queue);
        let (caches, Informers { mut namespaces }) = Caches::new();
        namespaces.on_change(setup.effects(&queue).with(changes::namespace_changed));
        setup.watch(namespaces);
        let controller = NamespaceController {
            caches,
            feeder: setup.feeder(),
            writer: Writer { ctx: ctx.clone() },
            sync_period: flags.namespace_sync_period.0,
            ctx,
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_namespace_syncs);
    }
}

struct NamespaceController {
    caches: Caches,
    feeder: Feeder,
    writer: Writer,
    sync_period: Duration,
    ctx: ControllerContext,
}

impl Controller for NamespaceController {
    /// Upstream: `syncNamespaceFromKey`, `pkg/controller/namespace/namespace_controller.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(due) = self.pass(key) else { return Ok(Requeue::Done) };
        if !due.is_due() {
            self.ctx.decide(key, &due);
            return Ok(Requeue::Done);
        }
        let Some(mut observed) = observe(self.ctx.control(), key).await? else { return Ok(Requeue::Done) };
        let planned = plan(&observed);
        self.ctx.decide(key, &planned);
        let Plan::Empty { phase, since } = planned else { return Ok(Requeue::Done) };
        if let Some(body) = phase
            && !self.writer.write_status(&mut observed, body).await?
        {
            return Ok(Requeue::Done);
        }

        let content = plan_content(live_served(&self.feeder).await, since);
        self.ctx.decide(key, &content);
        let outcome = self.writer.apply(&observed, content).await;
        if let Some(body) = next_status(&observed, &outcome, self.ctx.now()) {
            match self.writer.write_status(&mut observed, body).await {
                Ok(true) => {}
                Ok(false) => return Ok(Requeue::Done),
                Err(error) if ApiError::is_shadows(&error) => {}
                // The next round retries.
                Err(error) => tracing::warn!(%key, error = format!("{error:#}"), "cannot write the conditions"),
            }
        }

        let next = next_step(&observed, &outcome, self.sync_period);
        self.ctx.decide(key, &next);
        match next {
            Next::Finalize { body, kept: _ } => self.writer.finalize(&observed, &body).await.map(|()| Requeue::Done),
            Next::After(delay, _) => Ok(Requeue::After(delay, "the remaining content")),
            Next::Failed { errors, reason: _ } => bail!(errors.join("; ")),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&Namespace::RESOURCE)
    }

    /// Everything after this first stage needs live reads.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.pass(key).iter().map(stage).collect()
    }
}

impl NamespaceController {
    fn pass(&self, key: &Key) -> Option<Pass> {
        self.caches.namespaces.get(key).map(|namespace| pass(&namespace))
    }
}
