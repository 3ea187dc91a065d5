//! What a Node says about its network: its condition NetworkUnavailable.
//!
//! Upstream: `updateNetworkingCondition`, `k8s.io/cloud-provider/controllers/route/route_controller.go`.

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::time::Time;

use crate::memory::Known;
use crate::objects::{NETWORK_UNAVAILABLE, Network, Node};
use crate::observe::Observed;

/// What it has to say before its routes change, unless it says so: it has no CIDR, and its routes will be deleted. After
/// that nothing would tell that it had some.
pub fn before(observed: &Observed) -> Option<Network> {
    let node = observed.node.as_ref()?;
    let had_routes = matches!(&observed.routes, Known::Routes(routes) if !routes.is_empty());
    let is_unrouted = node.pod_cidrs.is_empty() && had_routes;
    is_unrouted.then_some(Network::Unrouted).filter(|network| !node.says(*network))
}

/// What it has to say after its routes were changed, unless it says so; `missing` of its CIDRs have no route.
pub fn after(observed: &Observed, missing: usize) -> Option<Network> {
    let node: &Node = observed.node.as_ref()?;
    if node.pod_cidrs.is_empty() || !matches!(observed.routes, Known::Routes(_)) {
        return None;
    }
    let network = if missing == 0 { Network::Routed } else { Network::Unrouted };
    Some(network).filter(|network| !node.says(*network))
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
