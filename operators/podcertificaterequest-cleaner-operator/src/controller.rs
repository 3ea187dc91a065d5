//! The operator as a process, and the sync of one request on one screen.
//!
//! Left out: how requests are found, which is in `rounds`.

mod rounds;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::{Backoff, Cause};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, PURPOSE, Writer};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::objects::POD_CERTIFICATE_REQUESTS;
use crate::observe::live_request;
use crate::plan::{plan, plan_live_read};
use rounds::{RoundController, round_key};

/// Upstream has one, which tries each request once a round; here a deletion that takes long keeps no other waiting.
const WORKERS: usize = 5;

/// The operator as a process.
pub struct PodCertificateRequestCleanerOperator;

impl Operator for PodCertificateRequestCleanerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let requests = setup.queue(facts::REQUESTS.name, Backoff::default());
        let rounds = setup.queue(facts::ROUNDS.name, Backoff::default());
        let round = RoundController {
            control: setup.control(&rounds),
            requests: requests.clone(),
            clock: setup.clock(),
            decisions: setup.decisions(&rounds),
        };
        let controller = PodCertificateRequestCleanerController {
            writer: Writer { control: setup.control(&requests) },
            clock: setup.clock(),
            decisions: setup.decisions(&requests),
        };
        let first = rounds.clone();
        setup.at_start(move || first.add(&round_key(), Cause::Event));
        setup.work(Arc::new(round), &rounds, 1);
        setup.work(Arc::new(controller), &requests, WORKERS);
    }
}

/// Syncs requests.
struct PodCertificateRequestCleanerController {
    writer: Writer,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for PodCertificateRequestCleanerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        self.decisions.record(self.clock.now(), key, &plan_live_read());
        let Some(observed) = live_request(&self.writer.control, key).await? else { return Ok(Requeue::Done) };
        let plan = plan(&observed, self.clock.now());
        self.decisions.record(self.clock.now(), key, &plan);
        let Outcome { next, error } = self.writer.apply(key, plan).await;
        match error {
            Some(error) => Err(error),
            None => Ok(Requeue::earliest([next.map(|left| (left, PURPOSE))])),
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&POD_CERTIFICATE_REQUESTS)
    }

    /// Of every request the same: it is read first. Its timer says when.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        vec![stage(&plan_live_read())]
    }
}
