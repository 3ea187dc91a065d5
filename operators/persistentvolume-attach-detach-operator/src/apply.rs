//! Executes plans: makes and deletes VolumeAttachments, and writes what a node reports.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use serde_json::json;
use shared::api::intern::Text;
use shared::api::json;
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch, aggregate, together};
use shared::working::queue::{Cause, Queue};
use shared::working::worker::Requeue;

use crate::memory::Memory;
use crate::metrics::DetachMetrics;
use crate::objects::VOLUME_ATTACHMENTS;
use crate::objects::volume::{Spec, VolumeName};
use crate::plan::{Act, NodePlan, Plan, Reported, Step, messages};
use crate::status::attached_status;

/// Writes of volumes' syncs.
pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) memory: Arc<Memory>,
    pub(crate) nodes: Queue,
    pub(crate) metrics: DetachMetrics,
}

impl Writer {
    /// Takes the steps of all nodes, whichever of them fail. `at` is when the memory was read.
    pub(crate) async fn apply(&self, key: &Key, plan: Plan, at: Instant) -> anyhow::Result<Requeue> {
        let Plan { volume, steps } = plan;
        let looks: Vec<_> = steps.iter().map(|step| step.left.map(|left| (left, "the end of a wait"))).collect();
        let taken = together(steps.into_iter().map(|step| self.take(key, &volume, step, at))).await;
        aggregate(taken.into_iter().filter_map(Result::err).collect())?;
        Ok(Requeue::earliest(looks))
    }

    async fn take(&self, key: &Key, volume: &VolumeName, step: Step, at: Instant) -> anyhow::Result<()> {
        let Step { node, act, remember, syncs_node, events, left: _, reason: _ } = step;
        // What is requested is remembered before, because the answer may be lost.
        self.memory.remember(volume, &node, remember, at);
        for event in events {
            self.ctx.event(event);
        }
        let acted = self.act(key, (volume, &node), act).await;
        if syncs_node {
            self.nodes.add(&Key::new("", &node), Cause::Event);
        }
        acted
    }

    async fn act(&self, key: &Key, (volume, node): (&VolumeName, &Text), act: Act) -> anyhow::Result<()> {
        match act {
            Act::Nothing | Act::Withdraw | Act::Grant => Ok(()),
            Act::Attach { attachment, driver, spec, pods } => {
                let body = attachment_body(&attachment, &driver, node, &spec);
                if let Err(error) = self.ctx.for_name(key).create(&VOLUME_ATTACHMENTS, "", body).await
                    // Its name says that it is for this volume and this node.
                    && !error.is_already_exists()
                {
                    if !error.is_outcome_unknown() {
                        self.memory.request_failed(volume, node);
                    }
                    for event in messages::not_created(&pods, &spec.name, &error.to_string()) {
                        self.ctx.event(event);
                    }
                    return Err(anyhow!(error).context(format!("cannot create VolumeAttachment {attachment}")));
                }
                tracing::info!(%volume, node = node.as_str(), "attaching volume");
                Ok(())
            }
            Act::Detach { attachment, uid, forced } => {
                let control = self.ctx.for_name(key);
                let deleted = control.delete(&VOLUME_ATTACHMENTS, &attachment, &DeleteOptions::of(uid)).await;
                deleted.unless_gone().with_context(|| format!("cannot delete VolumeAttachment {attachment}"))?;
                tracing::info!(%volume, node = node.as_str(), ?forced, "detaching volume");
                if let Some(forced) = forced {
                    self.metrics.forced(forced);
                }
                Ok(())
            }
        }
    }
}

/// Upstream: `Attach`, `pkg/volume/csi/csi_attacher.go`.
fn attachment_body(attachment: &Key, driver: &str, node: &str, spec: &Spec) -> Bytes {
    let Spec { volume: _, name, allows_multi_attach: _, inline } = spec;
    let source = match inline {
        Some(inline) => json!({ "inlineVolumeSpec": inline.spec() }),
        None => json!({ "persistentVolumeName": name.as_str() }),
    };
    json(&json!({
        "apiVersion": VOLUME_ATTACHMENTS.api_version(),
        "kind": VOLUME_ATTACHMENTS.kind,
        "metadata": { "name": attachment.name() },
        "spec": { "attacher": driver, "nodeName": node, "source": source },
    }))
}

/// Writes of nodes' syncs.
pub(crate) struct NodeWriter {
    pub(crate) ctx: ControllerContext,
    pub(crate) memory: Arc<Memory>,
    pub(crate) volumes: Queue,
}

impl NodeWriter {
    /// Writes the list, and then lets the volumes go that are not in it.
    pub(crate) async fn apply_node(&self, key: &Key, plan: NodePlan) -> anyhow::Result<()> {
        let NodePlan { node, write, acknowledge, reason } = plan;
        if let Some(Reported { uid, volumes }) = write {
            let patch = Patch::status(&attached_status(&volumes));
            let written = self.ctx.for_key(key, uid).patch(&NODES, key, uid, patch).await;
            written.unless_gone().context("cannot write the attached volumes")?;
            tracing::info!(node = node.as_str(), %reason, "updated the attached volumes of a node");
        }
        for volume in acknowledge {
            if self.memory.acknowledge(&volume, &node) {
                self.volumes.add(&volume.key(), Cause::Event);
            }
        }
        Ok(())
    }
}
