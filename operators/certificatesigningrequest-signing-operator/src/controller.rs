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
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::observe::authority::Signing;
use crate::observe::{Caches, Informers};
use crate::plan::{Plan, Reason, plan};
use crate::status::next_status;

/// Upstream's, of each signer.
const WORKERS: usize = 5;
/// A CA that has expired may be replaced, and nobody says when.
///
/// Upstream: `NewCertificateController`, `pkg/controller/certificates/certificate_controller.go`.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), max: Duration::from_secs(1000) };

/// The operator as a process.
pub struct CertificateSigningRequestSigningOperator;

impl Operator for CertificateSigningRequestSigningOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(Flags(Signing { authorities, duration }): &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, BACKOFF);
        let control = setup.control(&queue);
        let is_on = !authorities.is_empty();
        let (caches, Informers { mut certificate_signing_requests }) = Caches::new(authorities.clone());
        let caches = Arc::new(caches);
        if is_on {
            authorities.warn_of_open_files();
            certificate_signing_requests.on_change(setup.effects(&queue).of(&caches, Caches::request_changed));
            setup.watch(certificate_signing_requests);
        }
        let controller = CertificateSigningRequestSigningController {
            caches,
            is_on,
            longest: *duration,
            writer: Writer { control },
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

/// Syncs requests.
struct CertificateSigningRequestSigningController {
    caches: Arc<Caches>,
    /// Whether any signer has files.
    is_on: bool,
    /// `--cluster-signing-duration`.
    longest: Duration,
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for CertificateSigningRequestSigningController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let now = self.clock.now();
        let plan = plan(&observed, self.longest, now);
        self.decisions.record(now, key, &plan);
        let outcome = self.writer.apply(&observed, plan);
        if let Some(status) = next_status(&observed, &outcome, now) {
            self.writer.write_status(&observed, &status).await?;
        }
        let Outcome { verdict: _, error } = outcome;
        error.map_or(Ok(Requeue::Done), Err)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        if !self.is_on {
            return vec![stage(&Plan::Nothing(Reason::Off))];
        }
        let now = self.clock.now();
        self.caches.observe(key).iter().map(|observed| stage(&plan(observed, self.longest, now))).collect()
    }
}
