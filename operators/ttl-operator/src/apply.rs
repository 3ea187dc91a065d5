//! Executes a plan: at most one patch.

use anyhow::Context;
use serde_json::{Value, json};
use shared::api::object::{Key, Uid};
use shared::api::resource::NODES;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::Patch;

use crate::objects::TTL;
use crate::observe::Observed;
use crate::plan::Plan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        match plan {
            Plan::Keep(_) => Ok(()),
            Plan::Annotate { ttl_seconds, uid, reason: _ } => {
                self.annotate(&observed.node.metadata.key, uid, ttl_seconds).await
            }
        }
    }

    async fn annotate(&self, node: &Key, uid: Uid, ttl_seconds: u32) -> anyhow::Result<()> {
        let patch = Patch::strategic(&ttl_patch(ttl_seconds));
        let patched = self.ctx.for_key(node, uid).patch(&NODES, node, uid, patch).await;
        if patched.unless_gone().context("cannot change the ttl annotation")?.is_some() {
            tracing::info!(%node, ttl_seconds, "changed ttl annotation");
        }
        Ok(())
    }
}

/// Upstream: `patchNodeWithAnnotation`, `pkg/controller/ttl/ttl_controller.go`.
pub fn ttl_patch(ttl_seconds: u32) -> Value {
    json!({ "metadata": { "annotations": { TTL: ttl_seconds.to_string() } } })
}
