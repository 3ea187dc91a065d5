//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::bootstrap_token::NAMESPACE;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::SECRETS;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{Plan, plan};

/// Upstream's.
const WORKERS: usize = 1;

pub struct TokenCleanerOperator;

impl Operator for TokenCleanerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut secrets }) = Caches::new();
        secrets.on_change(setup.effects(&queue).with(changes::secret_changed));
        setup.watch(secrets);
        let controller = TokenCleanerController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct TokenCleanerController {
    caches: Caches,
    writer: Writer,
    ctx: ControllerContext,
}

impl TokenCleanerController {
    /// The decision of a sync, which a preview shows; none if the token is gone.
    fn decide(&self, key: &Key) -> Option<(Observed, Plan)> {
        let observed = self.caches.observe(key)?;
        let plan = plan(&observed, self.ctx.now());
        Some((observed, plan))
    }
}

impl Controller for TokenCleanerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&SECRETS).filter(|key| key.namespace() == NAMESPACE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}
