//! Which CIDRs a Node gets, once: the apiserver refuses to change them.
//!
//! Upstream: `AllocateOrOccupyCIDR`, `pkg/controller/nodeipam/ipam/range_allocator.go`.

use std::fmt;

use serde::Serialize;
use shared::api::cidr::{Cidr, PodCidr};
use shared::api::object::Uid;
use shared::working::decisions::{self, Reasoned};

use crate::memory::{Place, Range};
use crate::objects::joined;
use crate::observe::Observed;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    Keep(Reason),
    Assign {
        /// One of each range, in the order of the ranges.
        cidrs: Vec<Cidr>,
        uid: Uid,
        reason: Reason,
    },
    /// Assign nothing, because a range is full.
    Wait {
        index: usize,
        reason: Reason,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// `--allocate-node-cidrs` is false.
    Off,
    Has {
        cidrs: Vec<PodCidr>,
    },
    /// It has a CIDR that overlaps with another Node's or with the range of Services.
    Shared {
        cidr: PodCidr,
    },
    Outside {
        cidr: PodCidr,
    },
    BeingDeleted,
    Missing {
        /// How many blocks are free: in the range that has the fewest.
        free: u64,
    },
    /// It has none, and these were assigned before; that may have been stored.
    Assigned,
    /// It has none, and a range is full.
    Full {
        cluster_cidr: Cidr,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) | Self::Assign { reason, .. } | Self::Wait { reason, .. } => reason,
        }
    }
}

pub fn plan(observed: &Observed) -> Plan {
    let Observed { node, places, ranges, assigned } = observed;
    if !node.pod_cidrs().is_empty() {
        return Plan::Keep(standing(node.pod_cidrs(), places));
    }
    if node.metadata.is_being_deleted() {
        return Plan::Keep(Reason::BeingDeleted);
    }
    let uid = node.metadata.uid;
    if let Some(cidrs) = assigned {
        return Plan::Assign { cidrs: cidrs.clone(), uid, reason: Reason::Assigned };
    }
    match next_free(ranges) {
        Ok(cidrs) => {
            let free = ranges.iter().map(|range| range.free).min().unwrap_or_default();
            Plan::Assign { cidrs, uid, reason: Reason::Missing { free } }
        }
        Err((index, cluster_cidr)) => Plan::Wait { index, reason: Reason::Full { cluster_cidr } },
    }
}

/// One free block of each range, or the first range that is full, with its place.
fn next_free(ranges: &[Range]) -> Result<Vec<Cidr>, (usize, Cidr)> {
    let next = |(index, range): (usize, &Range)| range.next.ok_or((index, range.cluster_cidr));
    ranges.iter().enumerate().map(next).collect()
}

/// The reason to keep the CIDRs of a Node; it names the first wrong one.
fn standing(cidrs: &[PodCidr], places: &[Place]) -> Reason {
    let first_in = |wanted: Place| {
        let found = cidrs.iter().zip(places).find(|(_, place)| **place == wanted);
        found.map(|(cidr, _)| cidr.clone())
    };
    if let Some(cidr) = first_in(Place::Outside) {
        return Reason::Outside { cidr };
    }
    first_in(Place::Shared).map_or_else(|| Reason::Has { cidrs: cidrs.to_vec() }, |cidr| Reason::Shared { cidr })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(reason) => write!(f, "keep ({reason})"),
            Self::Assign { cidrs, uid: _, reason } => write!(f, "assign {} ({reason})", joined(cidrs)),
            Self::Wait { index: _, reason } => write!(f, "wait ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("--allocate-node-cidrs is false"),
            Self::Has { cidrs } => write!(f, "has {}", joined(cidrs)),
            Self::Shared { cidr } => {
                write!(f, "has {cidr}, which overlaps with another Node or --service-cluster-ip-range")
            }
            Self::Outside { cidr } => write!(f, "has {cidr}, which is not in --cluster-cidr"),
            Self::BeingDeleted => f.write_str("is being deleted"),
            Self::Missing { free } => write!(f, "has none, free: {free}"),
            Self::Assigned => f.write_str("has none, and these were assigned before"),
            Self::Full { cluster_cidr } => write!(f, "has none, and {cluster_cidr} is full"),
        }
    }
}
