//! Executes a plan: at most one server-side apply of a role's rules.
//!
//! Left out: events, of which upstream has none.

use anyhow::Context;
use serde::Serialize;
use shared::api::object::{Key, Uid};
use shared::runtime::control::{Control, Patch};

use crate::objects::{CLUSTER_ROLES, Rule};
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

/// The owner of the rules of aggregated roles; upstream's, so that after a handover in either direction there is one.
///
/// Upstream: `applyClusterRoles`, `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.
pub const FIELD_MANAGER: &str = "clusterrole-aggregation-controller";

/// Applies rules.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The error of the apply, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { cluster_role, selected: _ } = observed;
        let key = &cluster_role.metadata.key;
        let done = match plan {
            Plan::Nothing(Reason::InvalidSelector { error }) => {
                // An edit brings the key back.
                tracing::warn!(%key, %error, "invalid selector");
                Ok(())
            }
            Plan::Nothing(_) => Ok(()),
            Plan::Apply { rules, uid, reason: _ } => self.apply_rules(key, uid, &rules).await,
        };
        Outcome { error: done.err() }
    }

    async fn apply_rules(&self, key: &Key, uid: Uid, rules: &[Rule]) -> anyhow::Result<()> {
        let patch = Patch::apply(FIELD_MANAGER, &Configuration::new(key.name(), rules));
        self.control.for_key(key, uid).patch(&CLUSTER_ROLES, key, uid, patch).await.context("apply the rules")?;
        tracing::info!(%key, rules = rules.len(), "applied the rules of the selected roles");
        Ok(())
    }
}

/// The fields that are applied. An empty list of rules is applied too: if it were left out, rules with another owner
/// would stay.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Name<'a>,
    rules: &'a [Rule],
}

#[derive(Debug, Serialize)]
struct Name<'a> {
    name: &'a str,
}

impl<'a> Configuration<'a> {
    /// A role of this name with these rules.
    pub fn new(name: &'a str, rules: &'a [Rule]) -> Self {
        Self { api_version: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: Name { name }, rules }
    }
}
