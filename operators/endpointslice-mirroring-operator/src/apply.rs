//! Executes a plan: has slices written, and tells people.
//!
//! Decides nothing. Left out: the writes themselves, which [`shared::controllers::endpoints::slice_writer`] does.

use std::collections::BTreeMap;

use anyhow::Context;
use shared::api::object::Kind;
use shared::controllers::endpoints::slice_writer::{SliceWriter, Task};
use shared::runtime::control::aggregate;
use shared::runtime::events::{EventType, Recorder};

use crate::metrics::MirroringMetrics;
use crate::objects::EndpointSlice;
use crate::observe::Observed;
use crate::plan::{CleanUp, Mirrored, Plan, PlannedEvent};

/// Writes slices.
pub(crate) struct Writer {
    pub(crate) slices: SliceWriter<EndpointSlice>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: MirroringMetrics,
}

/// The result of executing a plan.
pub(crate) struct Outcome {
    /// The error.
    pub(crate) error: Option<anyhow::Error>,
}

impl Writer {
    /// Does what was planned.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let done = match plan {
            Plan::CleanUp(clean_up) => self.clean_up(observed, clean_up).await,
            Plan::Mirror(mirrored) => self.mirror(mirrored).await,
        };
        Outcome { error: done.err() }
    }

    /// Upstream: `deleteMirroredSlices` and `deleteEndpoints`, `pkg/controller/endpointslicemirroring/reconciler.go`.
    async fn clean_up(&self, observed: &Observed, CleanUp { why: _, delete }: CleanUp) -> anyhow::Result<()> {
        let (key, control) = (&observed.key, &self.slices.control);
        self.metrics.forget(key);
        self.slices.tracker.forget(key);
        let endpoints = observed.endpoints.as_ref();
        let control = endpoints.map_or_else(|| control.for_name(key), |found| control.for_key(key, found.metadata.uid));
        let (mut errors, all) = (Vec::new(), delete.len());
        for deletion in &delete {
            errors.extend(self.slices.delete(control, key, deletion).await.err().map(anyhow::Error::from));
        }
        let failed = errors.len();
        aggregate(errors)
            .with_context(|| format!("error(s) deleting {failed}/{all} EndpointSlices for {key} Endpoints, including"))
    }

    /// Upstream: `reconcile`, `reconciler.go`.
    async fn mirror(&self, mirrored: Mirrored) -> anyhow::Result<()> {
        self.metrics.decided(&mirrored);
        let Mirrored { endpoints, writes, notices, changes: _, skipped: _, invalid: _, sizes: _ } = mirrored;
        for PlannedEvent { reason, message } in notices {
            self.recorder.event(&endpoints.reference(), EventType::Warning, reason, message);
        }
        let task = Task { owner: endpoints.owner(), stamps: BTreeMap::new() };
        self.slices.write(&task, &writes).await.map(|_| ())
    }
}
