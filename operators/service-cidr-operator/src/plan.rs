//! Whether a ServiceCIDR gets, keeps or loses its finalizer.
//!
//! Left out: upstream's first check, whether each of its ranges is within another one. Checking each address covers it.
//!
//! Upstream: `sync` and `canDeleteCIDR`, `pkg/controller/servicecidrs/servicecidrs_controller.go`.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::object::Uid;
use shared::api::time::Time;
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, Reasoned};

use crate::objects::ServiceCidr;
use crate::observe::Observed;

/// By then every apiserver knows of a deletion, and has stopped allocating. Upstream: `deletionGracePeriod`.
const GRACE_SECONDS: i64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Add the finalizer if it is missing, and report Ready.
    Serve { lacks_finalizer: bool, uid: Uid },
    /// Keep it although it is being deleted, and report Terminating.
    Refuse {
        /// How many addresses need it.
        addresses: usize,
        first: IpAddr,
    },
    /// Wait until every apiserver knows of the deletion.
    Wait {
        /// The time until then.
        left: Duration,
        until: Time,
    },
    LetGo {
        uid: Uid,
        /// How many allocated addresses are in it.
        addresses: usize,
    },
    /// Write nothing: the finalizer is removed already.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is not being deleted.
    InUse,
    /// It has addresses that are in no other ServiceCIDR that stays.
    OnlyHere {
        addresses: usize,
        first: IpAddr,
    },
    /// An apiserver may not know yet that it is being deleted.
    GracePeriod {
        /// By when all know.
        until: Time,
    },
    /// Each of its addresses is in another ServiceCIDR too.
    NotNeeded {
        addresses: usize,
    },
    LetGo,
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match *self {
            Self::Serve { lacks_finalizer: _, uid: _ } => Reason::InUse,
            Self::Refuse { addresses, first } => Reason::OnlyHere { addresses, first },
            Self::Wait { left: _, until } => Reason::GracePeriod { until },
            Self::LetGo { uid: _, addresses } => Reason::NotNeeded { addresses },
            Self::Nothing => Reason::LetGo,
        }
    }
}

pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { service_cidr, others, addresses } = observed;
    let uid = service_cidr.metadata.uid;
    let Some(deleted) = service_cidr.metadata.deletion else {
        return Plan::Serve { lacks_finalizer: !service_cidr.has_finalizer(), uid };
    };
    let is_kept =
        |address: IpAddr| others.iter().any(|other| stays_longer_than(other, service_cidr) && other.contains(address));
    let in_it = addresses.iter().filter_map(|address| address.address);
    let only_here: Vec<IpAddr> = in_it.filter(|address| !is_kept(*address)).collect();
    if let Some(first) = only_here.iter().min() {
        return Plan::Refuse { addresses: only_here.len(), first: *first };
    }
    if let Some(left) = deleted.remaining(GRACE_SECONDS, now) {
        return Plan::Wait { left, until: Time::from_second(deleted.second().saturating_add(GRACE_SECONDS)) };
    }
    if service_cidr.has_finalizer() { Plan::LetGo { uid, addresses: addresses.len() } } else { Plan::Nothing }
}

/// Whether `other` outlives `service_cidr`. Of several that are being deleted the last one does. If each relied on the
/// others, all would go at once and leave addresses in no range.
fn stays_longer_than(other: &ServiceCidr, service_cidr: &ServiceCidr) -> bool {
    let (other, service_cidr) = (&other.metadata, &service_cidr.metadata);
    !other.is_being_deleted() || (other.deletion, &other.key) > (service_cidr.deletion, &service_cidr.key)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Serve { lacks_finalizer: true, uid: _ } => write!(f, "add the finalizer ({reason})"),
            Self::Serve { lacks_finalizer: false, uid: _ } | Self::Refuse { .. } => write!(f, "keep ({reason})"),
            Self::Wait { left, until: _ } => write!(f, "wait {} ({reason})", GoDuration(*left)),
            Self::LetGo { .. } => write!(f, "remove the finalizer ({reason})"),
            Self::Nothing => write!(f, "nothing ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("not being deleted"),
            Self::OnlyHere { addresses: 1, first } => write!(f, "{first} is in no other ServiceCIDR"),
            Self::OnlyHere { addresses, first } => {
                write!(f, "{addresses} addresses are in no other ServiceCIDR, the first is {first}")
            }
            Self::GracePeriod { until } => write!(f, "an apiserver may allocate from it until {until}"),
            Self::NotNeeded { addresses: 0 } => f.write_str("no address is in it"),
            Self::NotNeeded { addresses } => write!(f, "its {addresses} addresses are in other ServiceCIDRs too"),
            Self::LetGo => f.write_str("finalizer is removed already"),
        }
    }
}
