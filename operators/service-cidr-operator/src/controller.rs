//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::SERVICE_CIDRS;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{Plan, plan};
use crate::status::next_condition;

/// Upstream's.
const WORKERS: usize = 5;

pub struct ServiceCidrOperator;

impl Operator for ServiceCidrOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut service_cidrs, mut ip_addresses }) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        service_cidrs.on_change(effects.of(&caches, Caches::service_cidr_changed));
        ip_addresses.on_change(effects.of(&caches, Caches::ip_address_changed));
        let deletions = service_cidrs.need(|service_cidr| service_cidr.metadata.is_being_deleted());
        setup.watch(service_cidrs);
        setup.watch_while(ip_addresses, &deletions);
        let controller = ServiceCidrController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct ServiceCidrController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl ServiceCidrController {
    fn decide(&self, key: &Key) -> Option<(Observed, Plan)> {
        let observed = self.caches.observe(key)?;
        let plan = plan(&observed, self.ctx.now());
        Some((observed, plan))
    }
}

impl Controller for ServiceCidrController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        let outcome = self.writer.apply(&observed, plan).await?;
        if let Some(condition) = next_condition(&observed, &outcome, self.ctx.now()) {
            self.writer.write_condition(&observed, condition).await?;
        }
        let Outcome { readiness: _, next } = outcome;
        Ok(Requeue::earliest([next.map(|delay| (delay, "the end of its grace period"))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&SERVICE_CIDRS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}
