//! Hints after `trafficDistribution`: each endpoint for its own zone, and where asked for its own node.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/trafficdist/trafficdist.go`.

use std::sync::Arc;

use super::draft::Drafts;
use crate::objects::{Endpoint, Hints, traffic_distribution};

/// The preference in a Service's `trafficDistribution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficDistribution {
    /// Endpoints of the client's zone first.
    SameZone,
    /// Endpoints of the client's node first, then of its zone.
    SameNode,
}

impl TrafficDistribution {
    /// Reads it; none if it asks for nothing this controller knows.
    ///
    /// Upstream: `validTrafficDistribution`, `staging/src/k8s.io/endpointslice/reconciler.go`.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text? {
            traffic_distribution::PREFER_CLOSE | traffic_distribution::PREFER_SAME_ZONE => Some(Self::SameZone),
            traffic_distribution::PREFER_SAME_NODE => Some(Self::SameNode),
            _ => None,
        }
    }

    /// Whether a ready endpoint has other hints than it should have. No hints and empty ones are the same.
    ///
    /// Upstream: `preferCloseHeuristic.needsUpdate`.
    fn needs_update(self, endpoint: &Endpoint) -> bool {
        let none = Hints::default();
        let wanted = self.hints(endpoint);
        endpoint.is_ready() && endpoint.hints.as_deref().unwrap_or(&none) != wanted.as_deref().unwrap_or(&none)
    }

    /// Upstream: `preferCloseHeuristic.update`.
    fn hints(self, endpoint: &Endpoint) -> Option<Arc<Hints>> {
        let node = endpoint.node.as_ref().filter(|_| self == Self::SameNode);
        (endpoint.zone.is_some() || node.is_some()).then(|| Hints::new(endpoint.zone.as_ref(), node))
    }
}

/// Gives every ready endpoint the hints asked for. What is not ready keeps those it has.
///
/// Upstream: `ReconcileHints`.
pub(super) fn set_hints(wanted: TrafficDistribution, drafts: &mut Drafts<'_>) {
    drafts.update_also(|draft| draft.endpoints.iter().any(|endpoint| wanted.needs_update(endpoint)));
    for draft in drafts.written() {
        if draft.endpoints.iter().any(|endpoint| wanted.needs_update(endpoint)) {
            for endpoint in draft.endpoints.to_mut().iter_mut().filter(|endpoint| endpoint.is_ready()) {
                endpoint.hints = wanted.hints(endpoint);
            }
        }
    }
}
