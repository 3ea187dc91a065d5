//! Hints for `trafficDistribution`: each endpoint gets a hint for its zone, and perhaps for its node.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/trafficdist/trafficdist.go`.

use std::sync::Arc;

use super::draft::Drafts;
use crate::objects::{Endpoint, Hints, traffic_distribution};

/// The preference in a Service's `trafficDistribution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficDistribution {
    SameZone,
    /// Prefer endpoints on the client's node, then in its zone.
    SameNode,
}

impl TrafficDistribution {
    /// Parse the value; none if it is unknown.
    ///
    /// Upstream: `validTrafficDistribution`, `staging/src/k8s.io/endpointslice/reconciler.go`.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text? {
            traffic_distribution::PREFER_CLOSE | traffic_distribution::PREFER_SAME_ZONE => Some(Self::SameZone),
            traffic_distribution::PREFER_SAME_NODE => Some(Self::SameNode),
            _ => None,
        }
    }

    /// Whether a ready endpoint needs other hints. Missing hints equal empty ones.
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

/// Set the hints of every ready endpoint. Other endpoints keep theirs.
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
