//! The operator as a process, and one sync on one screen.
//!
//! Left out: which change enqueues which request, which is in `changes`.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, first_stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{plan, plan_live_read};

/// Upstream's.
const WORKERS: usize = 5;
/// A requester without permission may get it, and the apiserver tells nobody when.
///
/// Upstream: `NewCertificateController`, `pkg/controller/certificates/certificate_controller.go`.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), max: Duration::from_secs(1000) };

/// The operator as a process.
pub struct CertificateSigningRequestApprovingOperator;

impl Operator for CertificateSigningRequestApprovingOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, BACKOFF);
        let control = setup.control(&queue);
        let (caches, Informers { mut certificate_signing_requests }) = Caches::new();
        let caches = Arc::new(caches);
        certificate_signing_requests.on_change(setup.effects(&queue).of(&caches, Caches::request_changed));
        setup.watch(certificate_signing_requests);
        let controller = CertificateSigningRequestApprovingController {
            caches,
            writer: Writer { control },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

/// Syncs requests.
struct CertificateSigningRequestApprovingController {
    caches: Arc<Caches>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for CertificateSigningRequestApprovingController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        if let Some(live_read) = plan_live_read(&observed) {
            self.decisions.record(self.clock.now(), key, &live_read);
            observed = self.caches.review(&self.writer.control, observed).await?;
        }
        let plan = plan(&observed);
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { ask_again, error } = self.writer.apply(&observed, plan).await;
        match error {
            Some(error) => Err(error),
            None if ask_again => Ok(Requeue::RateLimited),
            None => Ok(Requeue::Done),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let first = |observed: &Observed| first_stage(plan_live_read(observed), || plan(observed));
        self.caches.observe(key).iter().map(first).collect()
    }
}
