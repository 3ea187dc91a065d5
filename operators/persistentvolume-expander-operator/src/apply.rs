//! Executes a plan: an event, and at most one annotation.

use anyhow::{Context, anyhow};
use shared::api::csi_translation::InTreePlugin;
use shared::api::object::{Kind, ObjectReference};
use shared::api::resource::PERSISTENT_VOLUME_CLAIMS;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{Patch, Preconditions};
use shared::working::events::PlannedEvent;

use crate::objects::{EXTERNAL_EXPANDING, PersistentVolumeClaim};
use crate::plan::Plan;
use crate::status::resizer;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, claim: &PersistentVolumeClaim, plan: Plan) -> anyhow::Result<()> {
        match plan {
            Plan::Nothing(_) => Ok(()),
            Plan::Retry(reason) => Err(anyhow!("cannot expand the volume: {reason}")),
            Plan::Wait(_) => {
                self.inform(claim.reference(), "waiting for an external controller to expand this PVC".to_owned());
                Ok(())
            }
            Plan::HandOver { plugin, annotate } => {
                let message = format!(
                    "CSI migration enabled for {}; waiting for external resizer to expand the pvc",
                    plugin.name
                );
                self.inform(claim.reference(), message);
                if annotate { self.annotate(claim, plugin).await } else { Ok(()) }
            }
        }
    }

    /// The annotation is written with the status: the role has no right to patch claims themselves.
    ///
    /// Upstream: `PatchPVCStatus`, `pkg/volume/util/resize_util.go`.
    async fn annotate(&self, claim: &PersistentVolumeClaim, plugin: InTreePlugin) -> anyhow::Result<()> {
        let metadata = &claim.metadata;
        let preconditions = Preconditions::of(metadata);
        let control = self.ctx.for_key(&metadata.key, metadata.uid);
        let patch = Patch::strategic(&resizer(plugin)).on_status();
        let patched = control.patch(&PERSISTENT_VOLUME_CLAIMS, &metadata.key, preconditions, patch).await;
        if let Err(error) = patched.unless_gone() {
            let (key, name) = (&metadata.key, metadata.name());
            let message = format!(
                "error setting resizer annotation to pvc {key}, with error patchPVCStatus failed to patch PVC \
                 \"{name}\": {error}"
            );
            self.ctx.event(PlannedEvent::warning(claim.reference(), EXTERNAL_EXPANDING, message));
            return Err(error).context("cannot name the external resizer");
        }
        Ok(())
    }

    fn inform(&self, about: ObjectReference, message: String) {
        self.ctx.event(PlannedEvent::normal(about, EXTERNAL_EXPANDING, message));
    }
}
