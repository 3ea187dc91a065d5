//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::first_stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{Question, plan, plan_live_read};

/// Upstream's.
const WORKERS: usize = 5;
/// A requester may get the permission at any time.
///
/// Upstream: `NewCertificateController`, `pkg/controller/certificates/certificate_controller.go`.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), max: Duration::from_secs(1000) };

pub struct CertificateSigningRequestApprovingOperator;

impl Operator for CertificateSigningRequestApprovingOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, BACKOFF);
        let ctx = setup.context(&queue);
        let (caches, Informers { mut certificate_signing_requests }) = Caches::new();
        certificate_signing_requests.on_change(setup.effects(&queue).with(changes::request_changed));
        setup.watch(certificate_signing_requests);
        let controller =
            CertificateSigningRequestApprovingController { caches, writer: Writer { ctx: ctx.clone() }, ctx };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct CertificateSigningRequestApprovingController {
    caches: Caches,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for CertificateSigningRequestApprovingController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        if let Some(live_read) = plan_live_read(&observed) {
            self.ctx.decide(key, &live_read);
            let Question::HasOneOf { permissions } = live_read.reason;
            observed = self.caches.review(self.ctx.control(), observed, permissions).await?;
        }
        let plan = plan(&observed);
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let first = |observed: &Observed| first_stage(plan_live_read(observed), || plan(observed));
        self.caches.observe(key).iter().map(first).collect()
    }
}
