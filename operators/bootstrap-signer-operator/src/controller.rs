//! The operator as a process, and one sync on one screen.
//!
//! Left out: which change leads to a sync, which is in `changes`.

mod changes;

use std::sync::Arc;

use shared::api::bootstrap_token::NAMESPACE;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::{CONFIG_MAPS, SECRETS};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::{cluster_info_key, id_of};
use crate::observe::{Caches, Informers};
use crate::plan::plan;

/// Upstream's.
const WORKERS: usize = 1;

/// The operator as a process.
pub struct BootstrapSignerOperator;

impl Operator for BootstrapSignerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let control = setup.control(&queue);
        let (caches, Informers { mut config_maps, mut secrets }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        config_maps.on_change(effects.of(&caches, Caches::config_map_changed));
        secrets.on_change(effects.of(&caches, Caches::secret_changed));
        // No secret is in memory where there is nothing to sign.
        let to_sign = config_maps.need(|cluster_info| cluster_info.kubeconfig.is_some());
        setup.watch(config_maps);
        setup.watch_while(secrets, &to_sign);
        let controller = BootstrapSignerController {
            caches,
            writer: Writer { control },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

/// Syncs the cluster's information: its queue has one key.
struct BootstrapSignerController {
    caches: Arc<Caches>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl BootstrapSignerController {
    /// Whether a Secret is a token, or is called as one.
    fn is_token(&self, key: &Key) -> bool {
        key.namespace() == NAMESPACE && (self.caches.secrets.get(key).is_some() || id_of(key.name()).is_some())
    }
}

impl Controller for BootstrapSignerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = plan(&observed, self.clock.now());
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { next, error } = self.writer.apply(&observed, plan).await;
        match error {
            Some(error) => Err(error),
            None => Ok(Requeue::earliest([next.map(|delay| (delay, "the expiration of a token"))])),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        let own = object.key_of(&CONFIG_MAPS).filter(|key| *key == cluster_info_key());
        own.or_else(|| object.key_of(&SECRETS).filter(|key| self.is_token(key)).map(|_| cluster_info_key()))
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        observed.iter().map(|observed| stage(&plan(observed, self.clock.now()))).collect()
    }
}
