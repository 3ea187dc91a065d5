//! Executes a plan: at most one patch.
//!
//! Left out: events, of which upstream has none.

use anyhow::Context;
use serde_json::{Value, json};
use shared::api::object::{Key, Uid};
use shared::api::resource::NODES;
use shared::runtime::control::{Control, Patch};

use crate::objects::TTL;
use crate::observe::Observed;
use crate::plan::Plan;

/// Annotates Nodes.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The error of the patch, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { node, nodes: _, boundary: _ } = observed;
        let done = match plan {
            Plan::Keep(_) => Ok(()),
            Plan::Annotate { ttl_seconds, uid, reason: _ } => self.annotate(&node.metadata.key, uid, ttl_seconds).await,
        };
        Outcome { error: done.err() }
    }

    async fn annotate(&self, node: &Key, uid: Uid, ttl_seconds: u32) -> anyhow::Result<()> {
        let patch = Patch::strategic(&ttl_patch(ttl_seconds));
        match self.control.for_key(node, uid).patch(&NODES, node, uid, patch).await {
            Ok(_) => {
                tracing::info!(%node, ttl_seconds, "changed the ttl annotation");
                Ok(())
            }
            // It has gone meanwhile.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("change the ttl annotation"),
        }
    }
}

/// Upstream: `patchNodeWithAnnotation`, `pkg/controller/ttl/ttl_controller.go`.
pub fn ttl_patch(ttl_seconds: u32) -> Value {
    json!({ "metadata": { "annotations": { TTL: ttl_seconds.to_string() } } })
}
