//! Executes a plan: at most one creation or update.
//!
//! Left out: events, of which upstream has none.

use anyhow::Context;
use serde_json::Value;
use shared::api::json;
use shared::api::object::Key;
use shared::runtime::control::{Control, Preconditions};

use crate::objects::CONFIG_MAPS;
use crate::observe::{Observed, config_map_key};
use crate::plan::Plan;

/// Creates and updates ConfigMaps.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The error of the write that failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { namespace, is_active: _, ca: _, config_map: _, live: _ } = observed;
        let done = match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Create(body) => self.create(namespace, &body).await,
            Plan::Update { wrong: _, body } => self.update(namespace, &body).await,
        };
        Outcome { error: done.err() }
    }

    async fn create(&self, namespace: &Key, body: &Value) -> anyhow::Result<()> {
        match self.control.for_name(namespace).create(&CONFIG_MAPS, namespace.name(), json(body)).await {
            Ok(_) => {
                tracing::info!(%namespace, "published the CA");
                Ok(())
            }
            // The namespace goes, or has gone. What somebody else has created is looked at once it is seen.
            Err(error) if error.is_not_found() || error.is_namespace_terminating() || error.is_already_exists() => {
                Ok(())
            }
            Err(error) => Err(error).context("create the ConfigMap"),
        }
    }

    async fn update(&self, namespace: &Key, body: &Value) -> anyhow::Result<()> {
        let (key, read) = (config_map_key(namespace), Preconditions::of_read(body));
        let control = self.control.for_name(namespace);
        control.replace(&CONFIG_MAPS, &key, "", read, body).await.context("update the ConfigMap")?;
        tracing::info!(%namespace, "published the CA in place of what was there");
        Ok(())
    }
}
