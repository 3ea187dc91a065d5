//! Executes a plan: at most one server-side apply of a role's rules.

use anyhow::Context;
use serde::Serialize;
use shared::api::object::{Key, Uid};
use shared::working::context::ControllerContext;
use shared::working::control::Patch;

use crate::objects::{CLUSTER_ROLES, Rule};
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

/// The field manager of aggregated rules. It is upstream's, so the rules keep one owner after a handover.
///
/// Upstream: `applyClusterRoles`, `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.
pub const FIELD_MANAGER: &str = "clusterrole-aggregation-controller";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let Observed { cluster_role, selected: _ } = observed;
        let key = &cluster_role.metadata.key;
        match plan {
            Plan::Nothing(Reason::InvalidSelector { error }) => {
                // The sync does not fail: only an edit can help, and it enqueues the role.
                tracing::warn!(%key, %error, "invalid selector");
                Ok(())
            }
            Plan::Nothing(_) => Ok(()),
            Plan::Apply { rules, uid, reason: _ } => self.apply_rules(key, uid, &rules).await,
        }
    }

    async fn apply_rules(&self, key: &Key, uid: Uid, rules: &[Rule]) -> anyhow::Result<()> {
        let patch = Patch::apply(FIELD_MANAGER, &Configuration::new(key.name(), rules));
        self.ctx.for_key(key, uid).patch(&CLUSTER_ROLES, key, uid, patch).await.context("cannot apply the rules")?;
        tracing::info!(%key, rules = rules.len(), "applied aggregated rules");
        Ok(())
    }
}

/// The applied fields. An empty list of rules is applied too: without it, the rules of another owner would stay.
#[derive(Debug, Serialize)]
pub struct Configuration<'a> {
    metadata: Name<'a>,
    rules: &'a [Rule],
}

#[derive(Debug, Serialize)]
struct Name<'a> {
    name: &'a str,
}

impl<'a> Configuration<'a> {
    pub fn new(name: &'a str, rules: &'a [Rule]) -> Self {
        Self { metadata: Name { name }, rules }
    }
}
