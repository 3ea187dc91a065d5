//! One sync of a DeviceTaintRule: it writes the condition that reports the progress of eviction.

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::worker::{Controller, Requeue};

use crate::apply::write_condition;
use crate::objects::DEVICE_TAINT_RULES;
use crate::observe::{Caches, ObservedRule};
use crate::plan::{RulePlan, RuleStep, plan_rule};
use crate::status::next_condition;

pub(super) struct RuleController {
    pub(super) caches: Arc<Caches>,
    pub(super) ctx: ControllerContext,
}

impl Controller for RuleController {
    /// Upstream: `maybeUpdateRuleStatus`, `pkg/controller/devicetainteviction/device_taint_eviction.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some((observed, plan)) = self.decide(key) else { return Ok(Requeue::Done) };
        self.ctx.decide(key, &plan);
        let RulePlan { step, reason } = plan;
        match step {
            RuleStep::Keep => Ok(Requeue::Done),
            RuleStep::Wait { left } => Ok(Requeue::After(left, "the next write of its condition")),
            RuleStep::Report => {
                if let Some(condition) = next_condition(&observed, &reason, self.ctx.now()) {
                    write_condition(&self.ctx, &observed.rule, condition).await?;
                }
                Ok(Requeue::Done)
            }
        }
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&DEVICE_TAINT_RULES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.decide(key).iter().map(|(_, plan)| stage(plan)).collect()
    }
}

impl RuleController {
    fn decide(&self, key: &Key) -> Option<(ObservedRule, RulePlan)> {
        let observed = self.caches.observe_rule(key)?;
        let plan = plan_rule(&observed, self.ctx.now());
        Some((observed, plan))
    }
}
