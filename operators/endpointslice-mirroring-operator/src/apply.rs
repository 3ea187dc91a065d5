//! Executes a plan: writes slices and records events.

use std::collections::BTreeMap;

use anyhow::Context;
use shared::api::object::Kind;
use shared::controllers::endpoints::slice_writer::{SliceWriter, Task};
use shared::working::control::aggregate;

use crate::metrics::MirroringMetrics;
use crate::objects::EndpointSlice;
use crate::observe::Observed;
use crate::plan::{CleanUp, Mirrored, Plan};

pub(crate) struct Writer {
    pub(crate) slices: SliceWriter<EndpointSlice>,
    pub(crate) metrics: MirroringMetrics,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        match plan {
            Plan::CleanUp(clean_up) => self.clean_up(observed, clean_up).await,
            Plan::Mirror(mirrored) => self.mirror(mirrored).await,
        }
    }

    /// Upstream: `deleteMirroredSlices` and `deleteEndpoints`, `pkg/controller/endpointslicemirroring/reconciler.go`.
    async fn clean_up(&self, observed: &Observed, CleanUp { why: _, delete }: CleanUp) -> anyhow::Result<()> {
        let (key, ctx) = (&observed.key, &self.slices.ctx);
        self.metrics.forget(key);
        self.slices.tracker.forget(key);
        let endpoints = observed.endpoints.as_ref();
        let control = endpoints.map_or_else(|| ctx.for_name(key), |found| ctx.for_key(key, found.metadata.uid));
        let (mut errors, all) = (Vec::new(), delete.len());
        for deletion in &delete {
            errors.extend(self.slices.delete(control, key, deletion).await.err().map(anyhow::Error::from));
        }
        let failed = errors.len();
        aggregate(errors).with_context(|| format!("cannot delete {failed} of {all} EndpointSlices of {key}"))
    }

    /// Upstream: `reconcile`, `reconciler.go`.
    async fn mirror(&self, mirrored: Mirrored) -> anyhow::Result<()> {
        self.metrics.decided(&mirrored);
        let Mirrored { endpoints, writes, events, changes: _, skipped: _, invalid: _, sizes: _ } = mirrored;
        for event in events {
            self.slices.ctx.event(event);
        }
        let task = Task { owner: endpoints.owner(), stamps: BTreeMap::new() };
        self.slices.write(&task, &writes).await.map(|_| ())
    }
}
