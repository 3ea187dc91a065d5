//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::bootstrap_token::NAMESPACE;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::{CONFIG_MAPS, SECRETS};
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::{cluster_info_key, id_of};
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{Plan, plan};

/// Upstream's.
const WORKERS: usize = 1;

pub struct BootstrapSignerOperator;

impl Operator for BootstrapSignerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut config_maps, mut secrets }) = Caches::new();
        let effects = setup.effects(&queue);
        config_maps.on_change(effects.with(changes::config_map_changed));
        secrets.on_change(effects.with(changes::secret_changed));
        // Without a text to sign, no secret is in memory.
        let to_sign = config_maps.need(|cluster_info| cluster_info.kubeconfig.is_some());
        setup.watch(config_maps);
        setup.watch_while(secrets, &to_sign);
        let controller = BootstrapSignerController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct BootstrapSignerController {
    caches: Caches,
    writer: Writer,
    ctx: ControllerContext,
}

impl BootstrapSignerController {
    /// Whether a Secret is a token, or has the name of one.
    fn is_token(&self, key: &Key) -> bool {
        key.namespace() == NAMESPACE && (self.caches.secrets.get(key).is_some() || id_of(key.name()).is_some())
    }

    /// The decision of a sync, which a preview shows; none if the ConfigMap is gone.
    fn decide(&self, key: &Key) -> Option<(Observed, Plan)> {
        let observed = self.caches.observe(key)?;
        let plan = plan(&observed, self.ctx.now());
        Some((observed, plan))
    }
}

impl Controller for BootstrapSignerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        let own = object.key_of(&CONFIG_MAPS).filter(|key| *key == cluster_info_key());
        own.or_else(|| object.key_of(&SECRETS).filter(|key| self.is_token(key)).map(|_| cluster_info_key()))
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}
