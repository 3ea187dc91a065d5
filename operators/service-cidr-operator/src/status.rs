//! The condition Ready.
//!
//! Upstream: `updateConditionIfNeeded`, `pkg/controller/servicecidrs/servicecidrs_controller.go`.

use jiff::Timestamp;
use shared::api::condition::{FALSE, TRUE};
use shared::api::time::Time;

use crate::apply::{Outcome, Readiness};
use crate::objects::{READY, ReadyCondition};
use crate::observe::Observed;

const READY_MESSAGE: &str = "Kubernetes Service CIDR is ready";
/// Upstream: `ServiceCIDRReasonTerminating`.
const TERMINATING: &str = "Terminating";
const TERMINATING_MESSAGE: &str =
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

/// The condition to apply; none if the status has it already, or stays as it is.
pub fn next_condition(observed: &Observed, outcome: &Outcome, now: Timestamp) -> Option<ReadyCondition> {
    let (status, reason, message) = match outcome.readiness? {
        Readiness::Ready => (TRUE, "", READY_MESSAGE),
        Readiness::Terminating => (FALSE, TERMINATING, TERMINATING_MESSAGE),
    };
    let known = observed.service_cidr.ready.as_ref();
    let is_same =
        known.is_some_and(|known| known.status == status && known.reason == reason && *known.message == *message);
    (!is_same).then_some(ReadyCondition { type_: READY, status, reason, message, last_transition_time: Time::of(now) })
}
