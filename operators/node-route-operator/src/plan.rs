//! Which routes of a Node are deleted, and which are created.
//!
//! Upstream: `reconcile`, `k8s.io/cloud-provider/controllers/route/route_controller.go`.

pub mod round;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::cidr::{Cidr, PodCidr};
use shared::api::time::Time;
use shared::working::decisions::{self, Reasoned};

use crate::memory::Known;
use crate::objects::ListedRoute;
use crate::observe::Observed;

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Before the creations: a route may be replaced.
    pub delete: Vec<(Arc<ListedRoute>, Stale)>,
    pub create: Vec<PodCidr>,
    /// CIDRs whose routes are created later, when another route to them is deleted.
    pub wait: Vec<PodCidr>,
    pub reason: Reason,
}

/// Why a route is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    Blackhole,
    NodeGone,
    NotItsCidr,
    OldAddresses,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// `--configure-cloud-routes` is false.
    Off,
    Unsupported,
    NotListed,
    /// The cloud asked for time.
    NotReady {
        until: Time,
    },
    /// The Node is gone.
    Gone,
    /// It has no CIDR yet.
    Unassigned,
    /// It has all its routes, and no other.
    Routed {
        cidrs: usize,
    },
    Wrong {
        stale: usize,
        missing: usize,
        waiting: usize,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl Plan {
    pub fn nothing(reason: Reason) -> Self {
        Self { delete: Vec::new(), create: Vec::new(), wait: Vec::new(), reason }
    }

    /// Whether it changes a route.
    pub fn is_change(&self) -> bool {
        !self.delete.is_empty() || !self.create.is_empty()
    }
}

pub fn plan(observed: &Observed, cluster_cidrs: &[Cidr], now: Timestamp) -> Plan {
    let Observed { key: _, node, routes, in_the_way, pause } = observed;
    let routes = match routes {
        Known::NotYet => return Plan::nothing(Reason::NotListed),
        Known::Unsupported => return Plan::nothing(Reason::Unsupported),
        Known::Routes(routes) => routes,
    };
    if let Some(left) = pause.and_then(|pause| pause.left(now)) {
        let until = Time::of(now.checked_add(left).unwrap_or(Timestamp::MAX));
        return Plan::nothing(Reason::NotReady { until });
    }
    let ours = routes.iter().filter(|route| route.is_listed && route.is_ours(cluster_cidrs));
    let delete: Vec<_> = ours.filter_map(|route| Some((Arc::clone(route), stale(route, observed)?))).collect();
    let (mut create, mut wait) = (Vec::new(), Vec::new());
    for (cidr, node) in node.iter().flat_map(|node| node.pod_cidrs.iter().map(move |cidr| (cidr, node))) {
        let leads = |route: &Arc<ListedRoute>| route.destination == *cidr && route.leads_to(&node.addresses);
        if routes.iter().any(leads) {
            continue;
        }
        let waits = in_the_way.iter().any(|route| route.destination == *cidr);
        if waits { &mut wait } else { &mut create }.push(cidr.clone());
    }
    let (stale, missing, waiting) = (delete.len(), create.len(), wait.len());
    let reason = match node.as_ref().map(|node| node.pod_cidrs.len()) {
        None => Reason::Gone,
        Some(0) => Reason::Unassigned,
        Some(cidrs) if stale + missing + waiting == 0 => Reason::Routed { cidrs },
        Some(_) => Reason::Wrong { stale, missing, waiting },
    };
    Plan { delete, create, wait, reason }
}

/// Why a route to this Node is deleted, if it is.
fn stale(route: &ListedRoute, observed: &Observed) -> Option<Stale> {
    if route.route.blackhole {
        return Some(Stale::Blackhole);
    }
    match &observed.node {
        None => Some(Stale::NodeGone),
        Some(node) if !node.pod_cidrs.contains(&route.destination) => Some(Stale::NotItsCidr),
        Some(node) if !route.leads_to(&node.addresses) => Some(Stale::OldAddresses),
        Some(_) => None,
    }
}

/// `delete 10.0.1.0/24 (not a CIDR of its Node), create 10.0.0.0/24 (routes: 1 stale, 1 missing, 0 waiting)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delete, create, wait, reason } = self;
        let deletions = delete.iter().map(|(route, stale)| format!("delete {} ({stale})", route.destination));
        let creations = create.iter().map(|cidr| format!("create {cidr}"));
        let waiting = wait.iter().map(|cidr| format!("wait for {cidr}"));
        let steps: Vec<String> = deletions.chain(creations).chain(waiting).collect();
        if steps.is_empty() { write!(f, "keep ({reason})") } else { write!(f, "{} ({reason})", steps.join(", ")) }
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blackhole => "leads nowhere",
            Self::NodeGone => "its Node is gone",
            Self::NotItsCidr => "not a CIDR of its Node",
            Self::OldAddresses => "to old addresses",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("--configure-cloud-routes is false"),
            Self::Unsupported => f.write_str("the cloud has no routes to keep"),
            Self::NotListed => f.write_str("the cloud has not listed its routes yet"),
            Self::NotReady { until } => write!(f, "the cloud wants no call before {until}"),
            Self::Gone => f.write_str("is gone"),
            Self::Unassigned => f.write_str("has no CIDR yet"),
            Self::Routed { cidrs } => write!(f, "has its routes, CIDRs: {cidrs}"),
            Self::Wrong { stale, missing, waiting } => {
                write!(f, "routes: {stale} stale, {missing} missing, {waiting} waiting")
            }
        }
    }
}
