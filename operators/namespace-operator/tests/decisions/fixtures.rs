//! Namespaces, and rounds of emptying them, in a line.

use namespace_operator::objects::{Emptied, LiveNamespace, Round};
use namespace_operator::observe::Observed;
use serde_json::{Value, json};
use shared::api::resource::{DEPLOYMENTS, PODS, Resource};

/// A namespace whose deletion began at `testing::NOW`, with these of `spec.finalizers`.
pub(crate) fn deleted(finalizers: &[&str]) -> Observed {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": "ns", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T12:00:00Z",
            "unknown": 1,
        },
        "spec": { "finalizers": finalizers, "unknown": 2 },
        "status": { "phase": "Terminating" },
    });
    Observed { namespace: LiveNamespace(namespace) }
}

pub(crate) fn with(mut observed: Observed, path: &str, value: Value) -> Observed {
    *observed.namespace.0.pointer_mut(path).unwrap() = value;
    observed
}

pub(crate) fn emptied(resource: Resource) -> Emptied {
    Emptied::nothing(resource)
}

/// Objects that remain for as long as their finalizers are there.
pub(crate) fn held(resource: Resource, remaining: usize, finalizers: &[(&str, usize)]) -> Emptied {
    let finalizers = finalizers.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Emptied { estimate_seconds: 15, remaining, finalizers, ..Emptied::nothing(resource) }
}

pub(crate) fn failed(resource: Resource, error: &str) -> Emptied {
    Emptied { error: Some(error.to_owned()), ..Emptied::nothing(resource) }
}

/// A round that found no pods, and these.
pub(crate) fn round(others: Vec<Emptied>) -> Round {
    Round { undiscovered: None, pods: Some(emptied(PODS)), others }
}

/// A round that found pods, which may take these seconds.
pub(crate) fn pods_remain(estimate_seconds: i64) -> Round {
    let pods = Emptied { estimate_seconds, remaining: 3, ..Emptied::nothing(PODS) };
    Round { undiscovered: None, pods: Some(pods), others: Vec::new() }
}

pub(crate) fn deployments_held() -> Round {
    round(vec![held(DEPLOYMENTS, 1, &[("custom.io/finalizer", 1)])])
}
