//! The status of a Service that gets its addresses from a pool: the addresses and one condition.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::condition::{FALSE, TRUE};
use shared::api::time::Time;

use crate::objects::pooled_service::{ADDRESS_ASSIGNED, PooledService};
use crate::plan::pools::{AddressPlan, AddressReason};

/// kube-proxy passes on what comes for the address itself. Upstream: `LoadBalancerIPModeVIP`.
const IP_MODE: &str = "VIP";

/// The part of the status that this operator applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolsStatus {
    pub load_balancer: LoadBalancerStatus,
    pub conditions: [AssignedCondition; 1],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadBalancerStatus {
    pub ingress: Vec<Ingress>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    pub ip: IpAddr,
    pub ip_mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AssignedCondition {
    /// [`ADDRESS_ASSIGNED`].
    #[serde(rename = "type")]
    pub type_: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
    pub last_transition_time: Time,
}

/// The status to apply; none if the Service has it, or if not all pools are known.
pub fn next_status(service: &PooledService, plan: &AddressPlan, now: Timestamp) -> Option<PoolsStatus> {
    let AddressPlan { addresses, reason } = plan;
    let (status, reason, message) = match reason {
        AddressReason::Unknown if *service.addresses == **addresses => return None,
        // An older Service has the address, which needs no pool to be known.
        AddressReason::Unknown => (FALSE, "PoolsUnknown", plan.reason.to_string()),
        AddressReason::Kept { pool } | AddressReason::Assigned { pool } => {
            (TRUE, "Assigned", format!("assigned from the pool {pool}"))
        }
        AddressReason::OneFamily { .. } => (TRUE, "OneFamilyAssigned", reason.to_string()),
        AddressReason::Unmet(problem) => (FALSE, problem.as_str(), problem.to_string()),
    };
    let known = service.assigned.as_ref();
    let is_known =
        known.is_some_and(|known| known.status == *status && known.reason == *reason && *known.message == *message);
    if is_known && *service.addresses == **addresses && !service.has_other_ingress {
        return None;
    }
    let transition = known.filter(|known| known.status == *status).and_then(|known| known.last_transition_time);
    let condition = AssignedCondition {
        type_: ADDRESS_ASSIGNED,
        status,
        reason,
        message,
        last_transition_time: transition.unwrap_or_else(|| Time::of(now)),
    };
    let ingress = addresses.iter().map(|address| Ingress { ip: *address, ip_mode: IP_MODE }).collect();
    Some(PoolsStatus { load_balancer: LoadBalancerStatus { ingress }, conditions: [condition] })
}
