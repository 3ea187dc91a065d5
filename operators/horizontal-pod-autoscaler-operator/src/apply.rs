//! Executes a plan: posts events, scales the target, and writes the status.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::api::object::{Key, Kind};
use shared::api::resource::Resource;
use shared::transport::api_error::ApiError;
use shared::transport::clock::instant;
use shared::working::context::ControllerContext;
use shared::working::control::Preconditions;
use shared::working::events::PlannedEvent;

use crate::memory::Memory;
use crate::objects::scale::{SCALE, Scale};
use crate::objects::{AutoscalerStatus, HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler, MetricStatus, events};
use crate::observe::scales::get_scale;
use crate::observe::{Observed, ReadScale};
use crate::plan::{Action, ActionLabel, Failure, Plan, PlannedCondition, Rescale, Tally};

/// Attempts to write a number before a conflict is an error. Upstream: `DefaultRetry`,
/// `staging/src/k8s.io/client-go/util/retry/util.go`.
const TRIES: usize = 5;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) memory: Arc<Memory>,
}

#[derive(Debug)]
pub struct Outcome {
    pub conditions: Vec<PlannedCondition>,
    pub drops_scaled_to_zero: bool,
    pub result: Scaled,
    pub tallies: Vec<Tally>,
    /// The failure for users, who get it in an event or a condition.
    pub failure: Option<Failure>,
    /// Set if this process may not write; nothing else counts then.
    pub error: Option<anyhow::Error>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Scaled {
    /// Its scale could not be read.
    Unknown,
    /// Unchanged, because no number could be computed.
    Left { current: i32, metrics: Vec<MetricStatus> },
    /// Unchanged, because the number is right.
    Kept { current: i32, metrics: Vec<MetricStatus> },
    /// Changed. `scaled_to_zero` is the condition `ScaledToZero`; none removes it.
    Done { from: i32, to: i32, metrics: Vec<MetricStatus>, scaled_to_zero: Option<bool> },
    /// Unchanged, because the write failed.
    Failed { current: i32, metrics: Vec<MetricStatus>, error: String },
}

impl Outcome {
    /// The label of upstream's metrics.
    pub fn action(&self) -> ActionLabel {
        match self.result {
            Scaled::Done { from, to, metrics: _, scaled_to_zero: _ } => ActionLabel::of(from, to),
            Scaled::Unknown
            | Scaled::Left { current: _, metrics: _ }
            | Scaled::Kept { current: _, metrics: _ }
            | Scaled::Failed { current: _, metrics: _, error: _ } => ActionLabel::None,
        }
    }

    pub fn desired(&self) -> Option<i32> {
        match self.result {
            Scaled::Done { from: _, to, metrics: _, scaled_to_zero: _ } => Some(to),
            Scaled::Kept { current, metrics: _ } => Some(current),
            Scaled::Unknown
            | Scaled::Left { current: _, metrics: _ }
            | Scaled::Failed { current: _, metrics: _, error: _ } => None,
        }
    }
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Plan { notices, conditions, drops_scaled_to_zero, recommendations, tallies, action, failure, reason: _ } =
            plan;
        for event in notices {
            self.ctx.event(event);
        }
        if let Some(recommendations) = recommendations {
            self.memory.set_recommendations(&observed.autoscaler, recommendations);
        }
        let result = Scaled::Unknown;
        let mut outcome = Outcome { conditions, drops_scaled_to_zero, result, tallies, failure, error: None };
        match action {
            Action::None => {}
            Action::Leave { current, metrics } => outcome.result = Scaled::Left { current, metrics },
            Action::Keep { current, metrics } => outcome.result = Scaled::Kept { current, metrics },
            Action::Scale(rescale) => {
                if let Ok(read) = &observed.scale {
                    self.rescale(&observed.autoscaler, read, rescale, &mut outcome).await;
                }
            }
        }
        outcome
    }

    async fn rescale(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        read: &ReadScale,
        rescale: Rescale,
        outcome: &mut Outcome,
    ) {
        let Rescale { from, to, cause, metrics, scaled_to_zero } = rescale;
        let (key, about) = (&autoscaler.metadata.key, autoscaler.reference());
        match self.write_scale(autoscaler, read, to).await {
            Ok(()) => {
                let message = format!("New size: {to}; reason: {cause}");
                self.ctx.event(PlannedEvent::normal(about, events::SUCCESSFUL_RESCALE, message));
                self.memory.add_change(autoscaler, (from, to), instant());
                tracing::info!(autoscaler = %key, from, to, reason = %cause, "scaled target");
                outcome.result = Scaled::Done { from, to, metrics, scaled_to_zero };
            }
            Err(error @ (ApiError::NotLeading | ApiError::Shadow)) => outcome.error = Some(error.into()),
            Err(error) => {
                let error = error.to_string();
                let message = format!("New size: {to}; reason: {cause}; error: {error}");
                self.ctx.event(PlannedEvent::warning(about, events::FAILED_RESCALE, message));
                let (kind, name) = (&autoscaler.target.kind, &autoscaler.target.name);
                let message = format!("failed to rescale {kind}/{}/{name}: {error}", key.namespace());
                outcome.failure = Some(Failure { message, is_spec: false });
                outcome.result = Scaled::Failed { current: from, metrics, error };
            }
        }
    }

    /// Writes the number under the version that was read. After a conflict it retries on the new version, unless that
    /// asks for another number: the decision was made on the old one.
    ///
    /// Upstream: `reconcileAutoscaler`, which overwrites another number too.
    async fn write_scale(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        read: &ReadScale,
        replicas: i32,
    ) -> Result<(), ApiError> {
        let ReadScale { resource, scale, served } = read;
        let key = &autoscaler.metadata.key;
        let target = Key::new(key.namespace(), &autoscaler.target.name);
        let control = self.ctx.for_key(key, autoscaler.metadata.uid);
        let mut body = served.clone();
        let mut tries = TRIES;
        loop {
            tries -= 1;
            body["spec"]["replicas"] = json!(replicas);
            // As they are written: an aggregated apiserver may have uids that are no UUIDs.
            let preconditions = Preconditions::of_read(&body);
            let conflict = match control.replace(resource, &target, SCALE, preconditions, &body).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() && tries > 0 => error,
                Err(error) => return Err(error),
            };
            let Some((newer, newer_scale)) = self.newer(resource, &target).await else { return Err(conflict) };
            let is_same =
                newer_scale.metadata.uid == scale.metadata.uid && newer_scale.spec.replicas == scale.spec.replicas;
            if !is_same {
                return Err(conflict);
            }
            body = newer;
        }
    }

    async fn newer(&self, resource: &Resource, target: &Key) -> Option<(Value, Scale)> {
        let served = get_scale(self.ctx.control(), resource, target).await.ok()?;
        let scale = serde_json::from_value(served.clone()).ok()?;
        Some((served, scale))
    }

    /// Writes the status under the observed version; the apiserver answers 409 if there is a newer one.
    pub(crate) async fn write_status(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        status: &AutoscalerStatus,
    ) -> Result<(), ApiError> {
        let meta = &autoscaler.metadata;
        let preconditions = Preconditions::of(meta);
        let control = self.ctx.for_key(&meta.key, meta.uid);
        let written = control.patch_status(&HORIZONTAL_POD_AUTOSCALERS, &meta.key, preconditions, status).await;
        if let Err(error) = &written
            && !matches!(error, ApiError::NotLeading | ApiError::Shadow)
        {
            let (about, message) = (autoscaler.reference(), error.to_string());
            self.ctx.event(PlannedEvent::warning(about, events::FAILED_UPDATE_STATUS, message));
        }
        written.map(drop)
    }
}
