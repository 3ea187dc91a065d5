//! Executes a plan: at most one patch of the ConfigMap's signatures.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::json;
use shared::api::object::Key;
use shared::api::resource::CONFIG_MAPS;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{Patch, Preconditions};
use shared::working::worker::Requeue;

use crate::objects::SIGNATURE_PREFIX;
use crate::observe::Observed;
use crate::plan::Plan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Requeue> {
        let Plan { signatures, preconditions, next, reason: _ } = plan;
        if !signatures.is_empty() {
            self.write(&observed.cluster_info.metadata.key, preconditions, &signatures).await?;
        }
        Ok(Requeue::earliest([next.map(|delay| (delay, "the expiration of a token"))]))
    }

    /// A merge patch keeps everything else in the ConfigMap.
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
        let patched = self.ctx.for_key(key, preconditions.uid).patch(&CONFIG_MAPS, key, preconditions, patch).await;
        if patched.unless_gone().context("cannot write the signatures")?.is_some() {
            let signed = signatures.values().flatten().count();
            tracing::info!(%key, signed, removed = signatures.len() - signed, "updated signatures");
        }
        Ok(())
    }
}
