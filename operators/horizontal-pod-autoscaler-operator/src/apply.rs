//! Carries out a plan: tells people, gives the target its number, notes what counts from now on, and writes the status.
//!
//! Decides nothing. Left out: the status itself, which is [`crate::status`]'s.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::api::object::{Key, Kind};
use shared::api::resource::Resource;
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::control::{Control, Preconditions};
use shared::runtime::events::{EventType, Recorder};

use crate::objects::scale::{SCALE, Scale};
use crate::objects::{AutoscalerStatus, HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler, MetricStatus, events};
use crate::observe::scales::get_scale;
use crate::observe::{Caches, Observed, ReadScale};
use crate::plan::{Action, ActionLabel, Failure, Plan, PlannedCondition, PlannedEvent, Rescale, Tally};

/// So often a number is written before a conflict is an error. Upstream: `DefaultRetry`,
/// `staging/src/k8s.io/client-go/util/retry/util.go`.
const TRIES: usize = 5;

/// Writes for autoscalers.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
    /// Where recommendations and changes are noted.
    pub(crate) caches: Arc<Caches>,
    pub(crate) clock: Clock,
}

/// The result of executing a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The conditions to set.
    pub conditions: Vec<PlannedCondition>,
    /// Whether the condition `ScaledToZero` is taken away.
    pub drops_scaled_to_zero: bool,
    /// What became of the target.
    pub result: Scaled,
    /// What was computed, for upstream's metrics.
    pub tallies: Vec<Tally>,
    /// The error that people were told of, with the step that failed.
    pub failure: Option<Failure>,
}

/// What became of the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Scaled {
    /// Nothing is known of it.
    Unknown,
    /// It was left at this number.
    Left {
        /// The number.
        current: i32,
        /// The lines of the metrics.
        metrics: Vec<MetricStatus>,
    },
    /// It has the number that it should have.
    Kept {
        /// The number.
        current: i32,
        /// The lines of the metrics.
        metrics: Vec<MetricStatus>,
    },
    /// It got another number.
    Done {
        /// The number that it had.
        from: i32,
        /// The number that it has now.
        to: i32,
        /// The lines of the metrics.
        metrics: Vec<MetricStatus>,
        /// The condition `ScaledToZero` that follows; none where it is taken away.
        scaled_to_zero: Option<bool>,
    },
    /// It could not be given another number.
    Failed {
        /// The number that it has.
        current: i32,
        /// The lines of the metrics.
        metrics: Vec<MetricStatus>,
        /// The error.
        error: String,
    },
}

impl Outcome {
    /// Where the target went, for upstream's metrics.
    pub fn action(&self) -> ActionLabel {
        match self.result {
            Scaled::Done { from, to, metrics: _, scaled_to_zero: _ } => ActionLabel::of(from, to),
            Scaled::Unknown
            | Scaled::Left { current: _, metrics: _ }
            | Scaled::Kept { current: _, metrics: _ }
            | Scaled::Failed { current: _, metrics: _, error: _ } => ActionLabel::None,
        }
    }

    /// The number that the target should have; none if nobody knows.
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
    /// Executes the plan.
    ///
    /// # Errors
    /// When this process may not write at all. Every other failure is part of the outcome.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Outcome, ApiError> {
        let Plan {
            notices,
            conditions,
            drops_scaled_to_zero,
            recommendations,
            tallies,
            action,
            mut failure,
            reason: _,
        } = plan;
        for PlannedEvent { about, kind, reason, message } in notices {
            self.recorder.event(&about, kind, reason, message);
        }
        if let Some(recommendations) = recommendations {
            self.caches.histories.recommended(&observed.autoscaler.metadata.key, recommendations);
        }
        let result = match action {
            Action::None => Scaled::Unknown,
            Action::Leave { current, metrics } => Scaled::Left { current, metrics },
            Action::Keep { current, metrics } => Scaled::Kept { current, metrics },
            Action::Scale(rescale) => match &observed.scale {
                Ok(read) => self.rescale(&observed.autoscaler, read, rescale, &mut failure).await?,
                Err(_) => Scaled::Unknown,
            },
        };
        Ok(Outcome { conditions, drops_scaled_to_zero, result, tallies, failure })
    }

    async fn rescale(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        read: &ReadScale,
        rescale: Rescale,
        failure: &mut Option<Failure>,
    ) -> Result<Scaled, ApiError> {
        let Rescale { from, to, cause, metrics, scaled_to_zero } = rescale;
        let (key, about) = (&autoscaler.metadata.key, autoscaler.reference());
        match self.write_scale(autoscaler, read, to).await {
            Ok(()) => {
                let message = format!("New size: {to}; reason: {cause}");
                self.recorder.event(&about, EventType::Normal, events::SUCCESSFUL_RESCALE, message);
                if let Some(behavior) = &autoscaler.behavior {
                    self.caches.histories.scaled(key, behavior, (from, to), self.clock.now());
                }
                tracing::info!(autoscaler = %key, from, to, reason = %cause, "scaled");
                Ok(Scaled::Done { from, to, metrics, scaled_to_zero })
            }
            Err(error @ (ApiError::NotLeading | ApiError::Shadow)) => Err(error),
            Err(error) => {
                let error = error.to_string();
                let message = format!("New size: {to}; reason: {cause}; error: {error}");
                self.recorder.event(&about, EventType::Warning, events::FAILED_RESCALE, message);
                let (kind, name) = (&autoscaler.target.kind, &autoscaler.target.name);
                let message = format!("failed to rescale {kind}/{}/{name}: {error}", key.namespace());
                *failure = Some(Failure { message, is_spec: false });
                Ok(Scaled::Failed { current: from, metrics, error })
            }
        }
    }

    /// Writes the number under the version that was read. Where something else of the target has changed since, the
    /// number goes to its new state; where it asks for another number by now, that is somebody else's answer to another
    /// question, and the conflict stands.
    ///
    /// Upstream: `reconcileAutoscaler`, which writes over another number, too.
    async fn write_scale(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        read: &ReadScale,
        replicas: i32,
    ) -> Result<(), ApiError> {
        let ReadScale { resource, scale, served } = read;
        let key = &autoscaler.metadata.key;
        let target = Key::new(key.namespace(), &autoscaler.target.name);
        let control = self.control.for_key(key, autoscaler.metadata.uid);
        let (mut body, mut version) = (served.clone(), scale.metadata.resource_version);
        let mut tries = TRIES;
        loop {
            tries -= 1;
            body["spec"]["replicas"] = json!(replicas);
            let preconditions = Preconditions { uid: scale.metadata.uid, resource_version: Some(version) };
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
            (body, version) = (newer, newer_scale.metadata.resource_version);
        }
    }

    async fn newer(&self, resource: &Resource, target: &Key) -> Option<(Value, Scale)> {
        let served = get_scale(&self.control, resource, target).await.ok()?;
        let scale = serde_json::from_value(served.clone()).ok()?;
        Some((served, scale))
    }

    /// Writes the status of the state that was observed; the server refuses (409) if there is a newer one.
    pub(crate) async fn write_status(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        status: &AutoscalerStatus,
    ) -> Result<(), ApiError> {
        let meta = &autoscaler.metadata;
        let preconditions = Preconditions { uid: meta.uid, resource_version: Some(meta.resource_version) };
        let control = self.control.for_key(&meta.key, meta.uid);
        let written = control.patch_status(&HORIZONTAL_POD_AUTOSCALERS, &meta.key, preconditions, status).await;
        if let Err(error) = &written
            && !matches!(error, ApiError::NotLeading | ApiError::Shadow)
        {
            let about = autoscaler.reference();
            self.recorder.event(&about, EventType::Warning, events::FAILED_UPDATE_STATUS, error.to_string());
        }
        written.map(drop)
    }
}
