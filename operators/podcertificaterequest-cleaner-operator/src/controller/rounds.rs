//! The controller of rounds: one sync lists all requests and sets a timer for each.

use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::queue::Queue;
use shared::working::worker::{Controller, Requeue};

use crate::apply::apply_round;
use crate::observe::live_requests;
use crate::plan::plan_round;

/// Much shorter than the lifetime of a request, so that each is found in time.
///
/// Upstream: `newPodCertificateRequestCleanerController`, `cmd/kube-controller-manager/app/certificates.go`.
const PERIOD: Duration = Duration::from_mins(5);

pub(super) fn round_key() -> Key {
    Key::new("", "round")
}

pub(super) struct RoundController {
    pub(super) ctx: ControllerContext,
    pub(super) requests: Queue,
}

impl Controller for RoundController {
    /// Upstream: `worker`, `pkg/controller/certificates/cleaner/pcrcleaner.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let listed = live_requests(self.ctx.control()).await?;
        let plan = plan_round(&listed, self.ctx.now());
        self.ctx.decide(key, &plan);
        apply_round(&self.requests, plan);
        Ok(Requeue::After(PERIOD, "the next round"))
    }

    /// None: a round belongs to no object.
    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    /// None: a round begins with a live read.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
