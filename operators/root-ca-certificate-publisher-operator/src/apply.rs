//! Executes a plan: at most one creation or update.

use anyhow::Context;
use serde_json::Value;
use shared::api::json;
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::control::Preconditions;

use crate::objects::CONFIG_MAPS;
use crate::observe::{Observed, config_map_key};
use crate::plan::Plan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let Observed { namespace, is_active: _, ca: _, config_map: _, live: _ } = observed;
        match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Create(body) => self.create(namespace, &body).await,
            Plan::Update { fault: _, body } => self.update(namespace, &body).await,
        }
    }

    async fn create(&self, namespace: &Key, body: &Value) -> anyhow::Result<()> {
        match self.ctx.for_name(namespace).create(&CONFIG_MAPS, namespace.name(), json(body)).await {
            Ok(_) => {
                tracing::info!(%namespace, "published CA");
                Ok(())
            }
            // The namespace is being deleted or gone, or the watch will show a ConfigMap that another client created.
            Err(error) if error.is_not_found() || error.is_namespace_terminating() || error.is_already_exists() => {
                Ok(())
            }
            Err(error) => Err(error).context("cannot create the ConfigMap"),
        }
    }

    async fn update(&self, namespace: &Key, body: &Value) -> anyhow::Result<()> {
        let (key, read) = (config_map_key(namespace), Preconditions::of_read(body));
        let control = self.ctx.for_name(namespace);
        control.replace(&CONFIG_MAPS, &key, "", read, body).await.context("cannot update the ConfigMap")?;
        tracing::info!(%namespace, "replaced published CA");
        Ok(())
    }
}
