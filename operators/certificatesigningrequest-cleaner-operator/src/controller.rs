//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
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

pub struct CertificateSigningRequestCleanerOperator;

impl Operator for CertificateSigningRequestCleanerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut certificate_signing_requests }) = Caches::new();
        certificate_signing_requests.on_change(setup.effects(&queue).with(changes::request_changed));
        setup.watch(certificate_signing_requests);
        let controller =
            CertificateSigningRequestCleanerController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct CertificateSigningRequestCleanerController {
    caches: Caches,
    writer: Writer,
    ctx: ControllerContext,
}

impl CertificateSigningRequestCleanerController {
    /// The decision of a sync, which a preview shows; none if the request is gone.
    fn decide(&self, key: &Key) -> Option<(Observed, Plan)> {
        let observed = self.caches.observe(key)?;
        let plan = plan(&observed, self.ctx.now());
        Some((observed, plan))
    }
}

impl Controller for CertificateSigningRequestCleanerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}
