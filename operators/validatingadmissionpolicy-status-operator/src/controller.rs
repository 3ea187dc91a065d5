//! The operator as a process, and one sync on one screen.

pub mod changes;

use std::sync::Arc;

use anyhow::Context;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::following::informer::Feeder;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::first_stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::VALIDATING_ADMISSION_POLICIES;
use crate::observe::{Caches, Informers};
use crate::plan::check::{Findings, check};
use crate::plan::{plan, plan_live_read};

pub struct ValidatingAdmissionPolicyStatusOperator;

impl Operator for ValidatingAdmissionPolicyStatusOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut validating_admission_policies }) = Caches::new();
        validating_admission_policies.on_change(setup.effects(&queue).with(changes::policy_changed));
        setup.watch(validating_admission_policies);
        let controller = ValidatingAdmissionPolicyStatusController {
            caches,
            feeder: setup.feeder(),
            writer: Writer { ctx: ctx.clone() },
            ctx,
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_validating_admission_policy_status_syncs);
    }
}

struct ValidatingAdmissionPolicyStatusController {
    caches: Caches,
    feeder: Feeder,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for ValidatingAdmissionPolicyStatusController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        if let Some(live_read) = plan_live_read(&observed) {
            self.ctx.decide(key, &live_read);
            observed = self.caches.read(self.ctx.control(), &self.feeder, observed).await?;
        }
        let findings = check(&observed).context("cannot start the check")?;
        let plan = plan(&observed, findings);
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&VALIDATING_ADMISSION_POLICIES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        let first = |observed| first_stage(plan_live_read(observed), || plan(observed, Findings::default()));
        self.caches.observe(key).iter().map(first).collect()
    }
}
