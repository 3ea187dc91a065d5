//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NAMESPACES;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::{DEFAULT, SERVICE_ACCOUNTS};
use crate::observe::{Caches, Informers};
use crate::plan::plan;

/// Upstream's.
const WORKERS: usize = 1;

pub struct ServiceAccountOperator;

impl Operator for ServiceAccountOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut namespaces, mut service_accounts }) = Caches::new();
        let effects = setup.effects(&queue);
        namespaces.on_change(effects.with(changes::namespace_changed));
        service_accounts.on_change(effects.with(changes::service_account_changed));
        setup.watch(namespaces);
        setup.watch(service_accounts);
        let controller = ServiceAccountController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct ServiceAccountController {
    caches: Caches,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for ServiceAccountController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = self.caches.observe(key);
        let plan = plan(&observed);
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        let account = object.key_of(&SERVICE_ACCOUNTS).filter(|key| key.name() == DEFAULT);
        object.key_of(&NAMESPACES).or_else(|| account.map(|key| Key::new("", key.namespace())))
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        vec![stage(&plan(&self.caches.observe(key)))]
    }
}
