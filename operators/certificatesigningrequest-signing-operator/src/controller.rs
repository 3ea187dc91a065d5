//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;
use std::time::Duration;

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
use crate::observe::authority::Signing;
use crate::observe::{Caches, Informers, Observed};
use crate::plan::{Plan, Reason, plan};

/// Upstream's, of each signer.
const WORKERS: usize = 5;
/// An expired CA may be replaced at any time.
///
/// Upstream: `NewCertificateController`, `pkg/controller/certificates/certificate_controller.go`.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(200), max: Duration::from_secs(1000) };

pub struct CertificateSigningRequestSigningOperator;

impl Operator for CertificateSigningRequestSigningOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(Flags(Signing { authorities, duration }): &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, BACKOFF);
        let ctx = setup.context(&queue);
        let is_on = !authorities.is_empty();
        let (caches, Informers { mut certificate_signing_requests }) = Caches::new(authorities.clone());
        if is_on {
            authorities.warn_of_open_files();
            certificate_signing_requests.on_change(setup.effects(&queue).with(changes::request_changed));
            setup.watch(certificate_signing_requests);
        }
        let controller = CertificateSigningRequestSigningController {
            caches,
            is_on,
            longest: *duration,
            writer: Writer { ctx: ctx.clone() },
            ctx,
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct CertificateSigningRequestSigningController {
    caches: Caches,
    is_on: bool,
    /// `--cluster-signing-duration`.
    longest: Duration,
    writer: Writer,
    ctx: ControllerContext,
}

impl CertificateSigningRequestSigningController {
    /// The decision of a sync, which a preview shows; none if the request is gone.
    fn decide(&self, key: &Key) -> Option<(Observed, Plan)> {
        let observed = self.caches.observe(key)?;
        let plan = plan(&observed, self.longest, self.ctx.now());
        Some((observed, plan))
    }
}

impl Controller for CertificateSigningRequestSigningController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CERTIFICATE_SIGNING_REQUESTS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        if !self.is_on {
            return vec![stage(&Plan::Nothing(Reason::Off))];
        }
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}
