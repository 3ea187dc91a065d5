//! The operator as a process, and one sync on one screen.
//!
//! Left out: which change enqueues which request, which is in `changes`.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
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
pub struct CertificateSigningRequestCleanerOperator;

impl Operator for CertificateSigningRequestCleanerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let control = setup.control(&queue);
        let (caches, Informers { mut certificate_signing_requests }) = Caches::new();
        let caches = Arc::new(caches);
        certificate_signing_requests.on_change(setup.effects(&queue).of(&caches, Caches::request_changed));
        setup.watch(certificate_signing_requests);
        let controller = CertificateSigningRequestCleanerController {
            caches,
            writer: Writer { control },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

/// Syncs requests.
struct CertificateSigningRequestCleanerController {
    caches: Arc<Caches>,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for CertificateSigningRequestCleanerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = plan(&observed, self.clock.now());
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { next, error } = self.writer.apply(&observed, plan).await;
        match error {
            Some(error) => Err(error),
            None => Ok(Requeue::earliest([next.map(|left| (left, "the end of its time"))])),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        observed.iter().map(|observed| stage(&plan(observed, self.clock.now()))).collect()
    }
}
