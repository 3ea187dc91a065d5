//! Builders of nodes and observations.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use node_lifecycle_operator::memory::{Known, Turn};
use node_lifecycle_operator::objects::Node;
use node_lifecycle_operator::observe::Observed;
use node_lifecycle_operator::plan::Config;
use serde_json::{Value, json};
use shared::testing::{NOW, ObjectBuilder, ago, object};

/// Upstream's defaults.
pub(crate) const CONFIG: Config = Config {
    period: Duration::from_secs(5),
    grace: Duration::from_secs(50),
    startup_grace: Duration::from_secs(60),
    rate: 0.1,
    secondary_rate: 0.01,
    large_zone: 50,
    unhealthy_threshold: 0.55,
};

/// So many seconds after now.
pub(crate) fn after(seconds: i64) -> Timestamp {
    ago(-seconds)
}

/// A node without a status.
pub(crate) fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).namespace("").label("app", "x")
}

/// Sets its conditions, as `("Ready", "True")`.
pub(crate) fn with(node: ObjectBuilder, conditions: &[(&str, &str)]) -> ObjectBuilder {
    let condition = |(type_, status): &(&str, &str)| {
        let since = NOW.to_string();
        let reason = if *status == "Unknown" { "NodeStatusUnknown" } else { "Kubelet" };
        json!({
            "type": type_, "status": status, "reason": reason, "lastHeartbeatTime": since, "lastTransitionTime": since,
        })
    };
    node.set(&["status", "conditions"], conditions.iter().map(condition).collect::<Vec<Value>>())
}

/// `node0`, whose condition Ready has this status; `""` for none.
pub(crate) fn of(ready: &str) -> ObjectBuilder {
    if ready.is_empty() { node("node0") } else { with(node("node0"), &[("Ready", ready)]) }
}

/// Sets its taints, as `not-ready:NoExecute`, or with a whole key.
pub(crate) fn tainted(node: ObjectBuilder, taints: &[&str]) -> ObjectBuilder {
    let taint = |text: &&str| {
        let (key, effect) = text.split_once(':').unwrap_or((text, ""));
        let key = if key.contains('/') { key.to_owned() } else { format!("node.kubernetes.io/{key}") };
        json!({ "key": key, "effect": effect })
    };
    node.set(&["spec", "taints"], taints.iter().map(taint).collect::<Vec<Value>>())
}

/// The observation of a registered node that was last heard from this many seconds ago.
pub(crate) fn silent_for(node: &ObjectBuilder, seconds: i64) -> Observed {
    let node: Arc<Node> = node.build();
    let known = Known { uid: node.metadata.uid, heard: ago(seconds), is_registered: true, turn: Turn::None };
    Observed {
        key: node.metadata.key.clone(),
        known: Some(known),
        node: Some(node),
        renewed: None,
        is_all_disrupted: false,
        looked: None,
        is_followed: true,
    }
}

/// The same, if it has this turn.
pub(crate) fn in_turn(mut observed: Observed, turn: Turn) -> Observed {
    if let Some(known) = &mut observed.known {
        known.turn = turn;
    }
    observed
}
