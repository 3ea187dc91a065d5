//! Executes a plan: at most one patch of the ConfigMap's signatures.
//!
//! Left out: events, of which upstream has none.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use shared::api::object::Key;
use shared::api::resource::CONFIG_MAPS;
use shared::runtime::control::{Control, Patch, Preconditions};

use crate::objects::SIGNATURE_PREFIX;
use crate::observe::Observed;
use crate::plan::Plan;

/// Writes signatures.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// When to look again; none if only a change can make a difference.
    pub next: Option<Duration>,
    /// The error of the patch, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { cluster_info, tokens: _ } = observed;
        let Plan { signatures, preconditions, next, reason: _ } = plan;
        let done = if signatures.is_empty() {
            Ok(())
        } else {
            self.write(&cluster_info.metadata.key, preconditions, &signatures).await
        };
        Outcome { next, error: done.err() }
    }

    /// A merge patch, so everything else in the ConfigMap stays.
    async fn write(
        &self,
        key: &Key,
        preconditions: Preconditions,
        signatures: &BTreeMap<String, Option<String>>,
    ) -> anyhow::Result<()> {
        let key_of = |id: &str| format!("{SIGNATURE_PREFIX}{id}");
        let data: BTreeMap<String, &Option<String>> =
            signatures.iter().map(|(id, signature)| (key_of(id), signature)).collect();
        let patch = Patch::merge(&json!({ "data": data }));
        match self.control.for_key(key, preconditions.uid).patch(&CONFIG_MAPS, key, preconditions, patch).await {
            Ok(_) => {
                let signed = signatures.values().flatten().count();
                tracing::info!(%key, signed, removed = signatures.len() - signed, "signed the cluster's information");
                Ok(())
            }
            // It is gone. One that is made anew is signed once it is seen.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("write the signatures"),
        }
    }
}
