//! The operator as a process, and one sync on one screen.
//!
//! Left out: which change enqueues which token, which is in `changes`.

mod changes;

use std::sync::Arc;

use shared::api::bootstrap_token::NAMESPACE;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::SECRETS;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers};
use crate::plan::plan;

/// Upstream's.
const WORKERS: usize = 1;

/// The operator as a process.
pub struct TokenCleanerOperator;

impl Operator for TokenCleanerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let control = setup.control(&queue);
        let (caches, Informers { mut secrets }) = Caches::new();
        let caches = Arc::new(caches);
        secrets.on_change(setup.effects(&queue).of(&caches, Caches::secret_changed));
        setup.watch(secrets);
        let controller = TokenCleanerController {
            caches,
            writer: Writer { control },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

/// Syncs tokens.
struct TokenCleanerController {
    caches: Arc<Caches>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for TokenCleanerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = plan(&observed, self.clock.now());
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { next, error } = self.writer.apply(&observed, plan).await;
        match error {
            Some(error) => Err(error),
            None => Ok(Requeue::earliest([next.map(|delay| (delay, "its expiration"))])),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&SECRETS).filter(|key| key.namespace() == NAMESPACE)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        observed.iter().map(|observed| stage(&plan(observed, self.clock.now()))).collect()
    }
}
