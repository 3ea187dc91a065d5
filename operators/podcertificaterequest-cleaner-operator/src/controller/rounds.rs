//! The controller of rounds: one sync lists all requests, and sets a timer for each.
//!
//! Left out: what becomes of a request when its timer fires.

use std::time::Duration;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::control::Control;
use shared::runtime::decisions::Decisions;
use shared::runtime::queue::Queue;
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::apply_round;
use crate::observe::live_requests;
use crate::plan::plan_round;

/// Much shorter than the life of a request, so that each is found in time.
///
/// Upstream: `newPodCertificateRequestCleanerController`, `cmd/kube-controller-manager/app/certificates.go`.
const PERIOD: Duration = Duration::from_mins(5);

/// The key of all rounds.
pub(super) fn round_key() -> Key {
    Key::new("", "round")
}

/// Finds requests.
pub(super) struct RoundController {
    pub(super) control: Control,
    /// The requests that wait for their time.
    pub(super) requests: Queue,
    pub(super) clock: Clock,
    pub(super) decisions: Decisions,
}

impl Controller for RoundController {
    /// Upstream: `worker`, `pkg/controller/certificates/cleaner/pcrcleaner.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let listed = live_requests(&self.control).await?;
        let plan = plan_round(&listed, self.clock.now());
        self.decisions.record(self.clock.now(), key, &plan);
        apply_round(&self.requests, plan);
        Ok(Requeue::After(PERIOD, "the next round"))
    }

    /// It acts on no object.
    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    /// All of it is read live.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
