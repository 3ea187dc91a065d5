//! Executes a plan: at most one creation.
//!
//! Left out: events, of which upstream has none.

use serde_json::json;
use shared::api::json;
use shared::api::object::Key;
use shared::runtime::api_error::ApiError;
use shared::runtime::control::Control;

use crate::objects::{DEFAULT, SERVICE_ACCOUNTS};
use crate::plan::Plan;

/// Creates ServiceAccounts.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

impl Writer {
    /// Does what was planned for this namespace.
    pub(crate) async fn apply(&self, namespace: &Key, plan: Plan) -> Result<(), ApiError> {
        match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Create => {
                let body = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": DEFAULT } });
                match self.control.for_name(namespace).create(&SERVICE_ACCOUNTS, namespace.name(), json(&body)).await {
                    Ok(_) => {
                        tracing::info!(%namespace, account = DEFAULT, "created the ServiceAccount");
                        Ok(())
                    }
                    // Somebody was faster, or the namespace has begun to go.
                    Err(error) if error.is_already_exists() || error.is_namespace_terminating() => Ok(()),
                    Err(error) => Err(error),
                }
            }
        }
    }
}
