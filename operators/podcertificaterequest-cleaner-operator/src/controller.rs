//! The operator as a process, and the sync of one request on one screen. `rounds` finds the requests.

mod rounds;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Backoff, Cause};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::objects::POD_CERTIFICATE_REQUESTS;
use crate::observe::live_request;
use crate::plan::{plan, plan_live_read};
use rounds::{RoundController, round_key};

/// Upstream has one. With several, a slow deletion does not delay the others.
const WORKERS: usize = 5;

pub struct PodCertificateRequestCleanerOperator;

impl Operator for PodCertificateRequestCleanerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let requests = setup.queue(facts::REQUESTS.name, Backoff::default());
        let rounds = setup.queue(facts::ROUNDS.name, Backoff::default());
        let round = RoundController { ctx: setup.context(&rounds), requests: requests.clone() };
        let ctx = setup.context(&requests);
        let controller = PodCertificateRequestCleanerController { writer: Writer { ctx: ctx.clone() }, ctx };
        let first = rounds.clone();
        // Each round finds out whether they are served.
        setup.when_served(POD_CERTIFICATE_REQUESTS, |_| {});
        setup.at_start(move || first.add(&round_key(), Cause::Event));
        setup.work(Arc::new(round), &rounds, 1);
        setup.work(Arc::new(controller), &requests, WORKERS);
    }
}

struct PodCertificateRequestCleanerController {
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for PodCertificateRequestCleanerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        self.ctx.decide(key, &plan_live_read());
        let Some(observed) = live_request(self.ctx.control(), key).await? else { return Ok(Requeue::Done) };
        let plan = plan(&observed, self.ctx.now());
        self.ctx.decide(key, &plan);
        self.writer.apply(key, plan).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&POD_CERTIFICATE_REQUESTS)
    }

    /// Each request is read first, when its timer fires.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        vec![stage(&plan_live_read())]
    }
}
