//! Executes a plan: at most one server-side apply of a policy's status.

use anyhow::Context;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::Patch;

use crate::objects::VALIDATING_ADMISSION_POLICIES;
use crate::observe::Observed;
use crate::plan::Plan;
use crate::status::Configuration;

/// The field manager of the status. It is upstream's, so the status keeps one owner after a handover.
///
/// Upstream: `ControllerName`, `pkg/controller/validatingadmissionpolicystatus/controller.go`.
pub const FIELD_MANAGER: &str = "validatingadmissionpolicy-status";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let Observed { policy, live: _ } = observed;
        let key = &policy.metadata.key;
        let (uid, generation, warnings) = match plan {
            Plan::Nothing(_) => return Ok(()),
            Plan::Apply { uid, generation, warnings, reason: _ } => (uid, generation, warnings),
        };
        let configuration = Configuration::new(key.name(), generation, &warnings);
        let patch = Patch::apply(FIELD_MANAGER, &configuration).on_status();
        let applied = self.ctx.for_key(key, uid).patch(&VALIDATING_ADMISSION_POLICIES, key, uid, patch).await;
        if applied.unless_gone().context("cannot apply the status")?.is_some() {
            tracing::info!(policy = %key, generation, warnings = warnings.len(), "applied type checking status");
        }
        Ok(())
    }
}
