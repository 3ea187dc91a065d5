//! The condition NetworkUnavailable of a Node.
//!
//! Upstream: `updateNetworkingCondition`, `k8s.io/cloud-provider/controllers/route/route_controller.go`.

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::time::Time;

use crate::memory::Known;
use crate::objects::{NETWORK_UNAVAILABLE, Network, Node};
use crate::observe::Observed;

/// The condition to write before the routes change, if the Node lacks it: it has no CIDR but still has routes. Once they
/// are deleted, nothing shows that it had them.
pub fn before(observed: &Observed) -> Option<Network> {
    let node = observed.node.as_ref()?;
    let had_routes = matches!(&observed.routes, Known::Routes(routes) if !routes.is_empty());
    let is_unrouted = node.pod_cidrs.is_empty() && had_routes;
    is_unrouted.then_some(Network::Unrouted).filter(|network| !node.has_condition(*network))
}

/// The condition to write after the routes were changed, if the Node lacks it. `missing` counts its CIDRs without a route.
pub fn after(observed: &Observed, missing: usize) -> Option<Network> {
    let node: &Node = observed.node.as_ref()?;
    if node.pod_cidrs.is_empty() || !matches!(observed.routes, Known::Routes(_)) {
        return None;
    }
    let network = if missing == 0 { Network::Routed } else { Network::Unrouted };
    Some(network).filter(|network| !node.has_condition(*network))
}

/// The strategic merge patch of `/status` with the condition.
///
/// Upstream: `SetNodeCondition`, `k8s.io/component-helpers/node/util/conditions.go`.
pub fn network_status(network: Network, now: Timestamp) -> Value {
    let now = Time::of(now);
    let condition = json!({
        "type": NETWORK_UNAVAILABLE,
        "status": network.status(),
        "reason": network.reason(),
        "message": network.message(),
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    });
    json!({ "status": { "conditions": [condition] } })
}
