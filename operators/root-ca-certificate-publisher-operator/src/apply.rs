//! Executes a plan: at most one creation, or one reading and one update.
//!
//! Left out: events, of which upstream has none.

use anyhow::Context;
use shared::api::json;
use shared::api::object::Key;
use shared::runtime::control::{Control, Preconditions};

use crate::objects::CONFIG_MAPS;
use crate::observe::{config_map_key, live};
use crate::plan::{Plan, plan_update};

/// Creates and updates ConfigMaps.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

impl Writer {
    /// Does what was planned for this namespace.
    pub(crate) async fn apply(&self, namespace: &Key, plan: &Plan) -> anyhow::Result<()> {
        match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Create(body) => {
                match self.control.for_name(namespace).create(&CONFIG_MAPS, namespace.name(), json(body)).await {
                    Ok(_) => {
                        tracing::info!(%namespace, "published the CA");
                        Ok(())
                    }
                    // The namespace goes, or has gone. What somebody else has created is looked at once it is seen.
                    Err(error)
                        if error.is_not_found() || error.is_namespace_terminating() || error.is_already_exists() =>
                    {
                        Ok(())
                    }
                    Err(error) => Err(error).context("create the ConfigMap"),
                }
            }
            Plan::Update { wrong: _, ca } => {
                // If it is gone, its deletion is the next event.
                let Some(live) = live(&self.control, namespace).await? else { return Ok(()) };
                let Some(body) = plan_update(&live, ca) else { return Ok(()) };
                let (key, read) = (config_map_key(namespace), Preconditions::of_read(&live));
                let control = self.control.for_name(namespace);
                control.replace(&CONFIG_MAPS, &key, "", read, &body).await.context("update the ConfigMap")?;
                tracing::info!(%namespace, "published the CA in place of what was there");
                Ok(())
            }
        }
    }
}
