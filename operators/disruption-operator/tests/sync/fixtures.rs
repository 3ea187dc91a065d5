//! A budget, its pods and its status.

use disruption_operator::controller::DisruptionOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Running;
use shared::testing::{ObjectBuilder, object, pod, uid};

pub(crate) const KEY: &str = "default/web";
pub(crate) const BUDGETS: &str = "poddisruptionbudgets";

/// A budget of the pods labelled `app=web`.
pub(crate) fn budget(field: &str, limit: impl Into<Value>) -> ObjectBuilder {
    object("policy/v1", "PodDisruptionBudget", "web")
        .set(&["spec", field], limit)
        .set(&["spec", "selector"], json!({ "matchLabels": { "app": "web" } }))
}

/// A ready pod labelled `app=web`.
pub(crate) fn ready(name: &str) -> ObjectBuilder {
    pod(name).label("app", "web").ready()
}

/// The same object with an owner.
pub(crate) fn owned(object: ObjectBuilder, api_version: &str, kind: &str, name: &str) -> ObjectBuilder {
    let owner = json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid(name).to_string(), "controller": true,
    });
    object.set(&["metadata", "ownerReferences"], json!([owner]))
}

pub(crate) async fn start(server: &Server) -> Running {
    let running = Running::start::<DisruptionOperator>(server, &[]);
    running.at_rest().await;
    running
}

pub(crate) fn status(server: &Server) -> Value {
    server.get(BUDGETS, KEY).unwrap()["status"].clone()
}

/// Allowed, healthy, to be healthy, expected.
pub(crate) fn numbers(server: &Server) -> [i64; 4] {
    let status = status(server);
    ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]
        .map(|field| status[field].as_i64().unwrap_or(-1))
}
