//! The events about a budget and its pods, with upstream's texts.

use shared::api::object::Kind;
use shared::api::selector::{InvalidSelector, LabelSelector};
use shared::working::events::PlannedEvent;

use crate::objects::{Failure, Pod, PodDisruptionBudget, events};
use crate::observe::Observed;

fn warning(observed: &Observed, reason: &'static str, message: String) -> PlannedEvent {
    PlannedEvent::warning(observed.budget.reference(), reason, message)
}

pub(super) fn pods_failed(observed: &Observed, invalid: &InvalidSelector) -> PlannedEvent {
    warning(observed, events::NO_PODS, format!("Failed to get pods: {invalid}"))
}

pub(super) fn no_pods(observed: &Observed) -> PlannedEvent {
    PlannedEvent::normal(observed.budget.reference(), events::NO_PODS, "No matching pods found".to_owned())
}

pub(super) fn count_failed(observed: &Observed, failure: &Failure) -> PlannedEvent {
    let message = format!("Failed to calculate the number of expected pods: {}", failure.message);
    warning(observed, events::CALCULATE_EXPECTED_POD_COUNT_FAILED, message)
}

pub(super) fn unmanaged(observed: &Observed) -> PlannedEvent {
    let selector = LabelSelector::as_go_prints_it(observed.budget.selector.as_ref());
    let message = format!(
        "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, the \
         status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for \
         these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
    );
    warning(observed, events::UNMANAGED_PODS, message)
}

/// Upstream's text names the namespace twice instead of the budget.
pub(super) fn not_deleted(observed: &Observed, pod: &Pod) -> PlannedEvent {
    let namespace = observed.budget.metadata.namespace();
    let message = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
    PlannedEvent::warning(pod.reference(), events::NOT_DELETED, message)
}

/// The warning about a pod that several budgets select; none if at most one does.
///
/// Upstream: `getPdbForPod`, `pkg/controller/disruption/disruption.go`.
pub fn several_budgets<'a>(
    pod: &Pod,
    budgets: impl IntoIterator<Item = &'a PodDisruptionBudget>,
) -> Option<PlannedEvent> {
    let mut names = budgets.into_iter().map(|budget| budget.metadata.name());
    let (first, _second) = (names.next()?, names.next()?);
    let (namespace, name) = (pod.metadata.namespace(), pod.metadata.name());
    let message =
        format!("Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {first:?} arbitrarily.");
    Some(PlannedEvent::warning(pod.reference(), events::MULTIPLE_POD_DISRUPTION_BUDGETS, message))
}
