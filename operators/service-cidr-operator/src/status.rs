//! The condition Ready.
//!
//! Upstream: `updateConditionIfNeeded`, `pkg/controller/servicecidrs/servicecidrs_controller.go`.

use jiff::Timestamp;
use serde::Serialize;
use shared::api::condition::{FALSE, TRUE};
use shared::api::time::Time;

use crate::apply::{Outcome, Standing};
use crate::objects::READY;
use crate::observe::Observed;

const READY_MESSAGE: &str = "Kubernetes Service CIDR is ready";
/// Upstream: `ServiceCIDRReasonTerminating`.
const TERMINATING: &str = "Terminating";
const TERMINATING_MESSAGE: &str =
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

/// A condition as it is applied. Upstream sends an empty reason too, and owns that field then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyCondition {
    /// [`READY`].
    #[serde(rename = "type")]
    pub type_: &'static str,
    /// [`TRUE`] or [`FALSE`].
    pub status: &'static str,
    /// `""` if it is ready.
    pub reason: &'static str,
    /// The message for people.
    pub message: &'static str,
    /// The current time.
    pub last_transition_time: Time,
}

/// The condition to apply; none if the status has it already, or stays as it is.
pub fn next_condition(observed: &Observed, outcome: &Outcome, now: Timestamp) -> Option<ReadyCondition> {
    let (status, reason, message) = match outcome.standing? {
        Standing::Ready => (TRUE, "", READY_MESSAGE),
        Standing::Terminating => (FALSE, TERMINATING, TERMINATING_MESSAGE),
    };
    let known = observed.service_cidr.ready.as_ref();
    let is_same =
        known.is_some_and(|known| known.status == status && known.reason == reason && *known.message == *message);
    (!is_same).then_some(ReadyCondition { type_: READY, status, reason, message, last_transition_time: Time::of(now) })
}
