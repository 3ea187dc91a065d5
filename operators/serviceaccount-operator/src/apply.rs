//! Executes a plan: at most one creation.

use anyhow::Context;
use serde_json::json;
use shared::api::json;
use shared::api::object::Key;
use shared::working::context::ControllerContext;

use crate::objects::{DEFAULT, SERVICE_ACCOUNTS};
use crate::observe::Observed;
use crate::plan::Plan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Create => self.create(&observed.namespace).await,
        }
    }

    async fn create(&self, namespace: &Key) -> anyhow::Result<()> {
        let body = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": DEFAULT } });
        match self.ctx.for_name(namespace).create(&SERVICE_ACCOUNTS, namespace.name(), json(&body)).await {
            Ok(_) => {
                tracing::info!(%namespace, account = DEFAULT, "created ServiceAccount");
                Ok(())
            }
            Err(error) if error.is_already_exists() || error.is_namespace_terminating() => Ok(()),
            Err(error) => Err(error).context("cannot create the default ServiceAccount"),
        }
    }
}
