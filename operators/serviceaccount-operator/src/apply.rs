//! Executes a plan: at most one creation.
//!
//! Left out: events, of which upstream has none.

use anyhow::Context;
use serde_json::json;
use shared::api::json;
use shared::api::object::Key;
use shared::runtime::control::Control;

use crate::objects::{DEFAULT, SERVICE_ACCOUNTS};
use crate::observe::Observed;
use crate::plan::Plan;

/// Creates ServiceAccounts.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The error of the creation, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { namespace, is_active: _, has_account: _ } = observed;
        let done = match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Create => self.create(namespace).await,
        };
        Outcome { error: done.err() }
    }

    async fn create(&self, namespace: &Key) -> anyhow::Result<()> {
        let body = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": DEFAULT } });
        match self.control.for_name(namespace).create(&SERVICE_ACCOUNTS, namespace.name(), json(&body)).await {
            Ok(_) => {
                tracing::info!(%namespace, account = DEFAULT, "created the ServiceAccount");
                Ok(())
            }
            // Somebody was faster, or the namespace has begun to go.
            Err(error) if error.is_already_exists() || error.is_namespace_terminating() => Ok(()),
            Err(error) => Err(error).context("create the default ServiceAccount"),
        }
    }
}
