//! Executes a plan: at most one write of a node, and what is remembered of the provider's answer.

use anyhow::Context;
use serde_json::json;
use serde_json::value::RawValue;
use shared::api::object::Kind;
use shared::api::raw::{RawObject, raw_of};
use shared::api::resource::NODES;
use shared::api::taint::taints_spec;
use shared::transport::api_error::ResultExt;
use shared::transport::clock::instant;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch, Preconditions};
use shared::working::events::PlannedEvent;

use crate::memory::Absences;
use crate::objects::{Node, SHUTDOWN};
use crate::observe::Observed;
use crate::plan::{self, Plan, Step};

const DELETING_NODE: &str = "DeletingNode";
const DELETING_NODE_FAILED: &str = "DeletingNodeFailed";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, absences: &Absences, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let Observed { node, absent_since: _, answer: _, others: _ } = observed;
        let Plan { step, absence, again: _, reason: _ } = plan;
        let key = &node.metadata.key;
        match absence {
            plan::Absence::Unchanged => {}
            plan::Absence::Noted => absences.note(key, node.metadata.uid, instant()),
            plan::Absence::Over => absences.forget(key),
        }
        match step {
            Step::Keep => Ok(()),
            Step::Taint => self.patch(node, &shutdown_patch(node, true)).await,
            Step::Untaint => self.patch(node, &shutdown_patch(node, false)).await,
            Step::Delete => self.delete(node).await,
        }
    }

    /// All taints are replaced, so they must be those that were read.
    async fn patch(&self, node: &Node, patch: &RawValue) -> anyhow::Result<()> {
        let (key, state) = (&node.metadata.key, Preconditions::of(&node.metadata));
        let patched = self.ctx.for_key(key, node.metadata.uid).patch(&NODES, key, state, Patch::merge(&patch)).await;
        if patched.unless_gone().context("cannot change taints")?.is_some() {
            tracing::info!(node = %key, "changed taints");
        }
        Ok(())
    }

    /// A node whose kubelet has written since it was read is not deleted.
    async fn delete(&self, node: &Node) -> anyhow::Result<()> {
        let (key, uid) = (&node.metadata.key, node.metadata.uid);
        let (name, about) = (key.name(), node.reference().without_version());
        let message = format!("Deleting node {name} because it does not exist in the cloud provider");
        self.ctx.event(PlannedEvent::normal(about.clone(), DELETING_NODE, message));
        let options = DeleteOptions::of(Preconditions::of(&node.metadata));
        match self.ctx.for_key(key, uid).delete(&NODES, key, &options).await.unless_gone() {
            Ok(_) => {
                tracing::info!(node = %key, "deleted node that does not exist in the cloud");
                Ok(())
            }
            Err(error) => {
                let message = format!("Failed deleting node {name}: {error}");
                self.ctx.event(PlannedEvent::warning(about, DELETING_NODE_FAILED, message));
                Err(error).context("cannot delete the node")
            }
        }
    }
}

/// The merge patch of all taints of a node, with the one of a shutdown or without it.
pub fn shutdown_patch(node: &Node, is_shut_down: bool) -> Box<RawValue> {
    let new = is_shut_down.then(|| raw_of(&json!({ "key": SHUTDOWN.key, "effect": SHUTDOWN.effect.as_str() })));
    let mut patch = RawObject::default();
    patch.insert("spec", raw_of(&taints_spec(&node.taints, |taint| !SHUTDOWN.is(taint), new)));
    raw_of(&patch)
}
