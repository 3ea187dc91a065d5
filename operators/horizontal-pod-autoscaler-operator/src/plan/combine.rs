//! Combines metrics to one number: the largest that one asks for. A failed metric keeps the others from scaling down,
//! but not from scaling up.
//!
//! Upstream: `computeReplicasForMetrics`, `pkg/controller/podautoscaler/horizontal.go`.

use std::sync::Arc;

use jiff::Timestamp;
use shared::api::object::Kind;
use shared::working::events::PlannedEvent;

use super::replica_calculator::{ReplicaCalculator, Tolerances};
use super::selector::selector_fault;
use super::sources::{Fault, Proposal, Source, propose};
use super::{ActionLabel, Config, ErrorLabel, PlannedCondition, Tally};
use crate::objects::{HorizontalPodAutoscaler, MetricStatus, Pod, Scale, condition_reasons, conditions};
use crate::observe::{Answer, Measured, Observed};

#[derive(Clone, Debug, PartialEq)]
pub struct Combined {
    pub notices: Vec<PlannedEvent>,
    /// The condition `ScalingActive`; none if the pods could not be listed.
    pub active: Option<PlannedCondition>,
    /// The line of each metric in the status; empty for a failed one.
    pub statuses: Vec<MetricStatus>,
    pub tallies: Vec<Tally>,
    /// The number, and the metric that asks for it.
    pub proposal: Option<(i32, String)>,
    /// The error of the first failed metric, even if there is a number.
    pub error: Option<String>,
}

pub fn combine(observed: &Observed, scale: &Scale, config: &Config, now: Timestamp) -> Combined {
    let Observed { autoscaler, measured, .. } = observed;
    if let Some(fault) = selector_fault(&scale.status.selector, measured) {
        let notice = warning(autoscaler, fault.event, fault.message.clone());
        let active = PlannedCondition::new(conditions::SCALING_ACTIVE, false, fault.word, fault.condition);
        return failed(vec![notice], Some(active), fault.message);
    }
    if let Err(error) = &measured.pods {
        return failed(Vec::new(), None, format!("unable to get pods while calculating replica count: {error}"));
    }
    let pods = measured.pods.as_deref().map_err(String::as_str);
    let calculator = calculator(autoscaler, scale, pods, config, now);
    let proposals = proposals(autoscaler, measured, &calculator);
    merge(autoscaler, scale.spec.replicas, proposals)
}

fn calculator<'a>(
    autoscaler: &HorizontalPodAutoscaler,
    scale: &Scale,
    pods: Result<&'a [Arc<Pod>], &'a str>,
    config: &'a Config,
    now: Timestamp,
) -> ReplicaCalculator<'a> {
    ReplicaCalculator {
        pods,
        spec_replicas: scale.spec.replicas,
        status_replicas: scale.status.replicas,
        tolerances: tolerances(autoscaler, config),
        config,
        now,
    }
}

/// Upstream: `tolerancesForHpa`.
pub fn tolerances(autoscaler: &HorizontalPodAutoscaler, config: &Config) -> Tolerances {
    let mut tolerances = Tolerances { scale_down: config.tolerance, scale_up: config.tolerance };
    let behavior = autoscaler.behavior.as_ref().filter(|_| config.has_configurable_tolerance);
    if let Some(behavior) = behavior {
        if let Some(tolerance) = &behavior.scale_down.tolerance {
            tolerances.scale_down = tolerance.approximate();
        }
        if let Some(tolerance) = &behavior.scale_up.tolerance {
            tolerances.scale_up = tolerance.approximate();
        }
    }
    tolerances
}

fn proposals(
    autoscaler: &HorizontalPodAutoscaler,
    measured: &Measured,
    calculator: &ReplicaCalculator<'_>,
) -> Vec<Result<Proposal, Fault>> {
    let answers = measured.answers.iter().chain(std::iter::repeat(&Answer::None));
    let namespace = autoscaler.metadata.namespace();
    let each = autoscaler.metrics.iter().zip(answers);
    each.map(|(metric, answer)| propose(metric, Source { namespace, answer, calculator })).collect()
}

fn merge(
    autoscaler: &HorizontalPodAutoscaler,
    spec_replicas: i32,
    proposals: Vec<Result<Proposal, Fault>>,
) -> Combined {
    let (count, mut invalid) = (proposals.len(), 0_usize);
    let (mut notices, mut statuses, mut tallies) = (Vec::new(), Vec::new(), Vec::new());
    let (mut replicas, mut name, mut first) = (0, String::new(), None);
    for (spec, proposal) in autoscaler.metrics.iter().zip(proposals) {
        match proposal {
            Ok(Proposal { replicas: proposed, name: proposer, status }) => {
                tallies.push(tally(autoscaler, spec.type_name(), Ok(proposed)));
                statuses.push(status);
                if replicas == 0 || proposed > replicas {
                    (replicas, name) = (proposed, proposer);
                }
            }
            Err(fault) => {
                let label = if fault.is_spec { ErrorLabel::Spec } else { ErrorLabel::Internal };
                tallies.push(tally(autoscaler, spec.type_name(), Err(label)));
                statuses.push(MetricStatus::default());
                notices.push(warning(autoscaler, fault.word, fault.message.clone()));
                invalid += 1;
                first.get_or_insert(fault);
            }
        }
    }
    let error = first.as_ref().map(|fault: &Fault| {
        format!("invalid metrics ({invalid} invalid out of {count}), first error is: {}", fault.error)
    });
    match first {
        Some(Fault { word, message, .. }) if invalid >= count || replicas < spec_replicas => {
            let message = format!("the HPA was unable to compute the replica count: {message}");
            let active = Some(PlannedCondition::new(conditions::SCALING_ACTIVE, false, word, message));
            Combined { notices, active, statuses, tallies, proposal: None, error }
        }
        _ => {
            let message = format!("the HPA was able to successfully calculate a replica count from {name}");
            let word = condition_reasons::VALID_METRIC_FOUND;
            let active = Some(PlannedCondition::new(conditions::SCALING_ACTIVE, true, word, message));
            Combined { notices, active, statuses, tallies, proposal: Some((replicas, name)), error }
        }
    }
}

/// The result of one metric, compared with the replicas in the status.
fn tally(autoscaler: &HorizontalPodAutoscaler, type_: &str, proposed: Result<i32, ErrorLabel>) -> Tally {
    let current = autoscaler.status.current_replicas;
    let (action, error) = match proposed {
        Ok(replicas) => (ActionLabel::of(current, replicas), ErrorLabel::None),
        Err(label) => (ActionLabel::None, label),
    };
    Tally { type_: type_.to_owned(), action, error }
}

fn failed(notices: Vec<PlannedEvent>, active: Option<PlannedCondition>, error: String) -> Combined {
    let (statuses, tallies) = (Vec::new(), Vec::new());
    Combined { notices, active, statuses, tallies, proposal: None, error: Some(error) }
}

pub(super) fn warning(autoscaler: &HorizontalPodAutoscaler, reason: &'static str, message: String) -> PlannedEvent {
    PlannedEvent::warning(autoscaler.reference(), reason, message)
}
