//! What one wants to see of a test that failed: its objects, its events, and how the operators' logs end.
//! Left out: objects outside its namespace.

use std::fmt::Write;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;

use super::Scope;
use crate::apply::api;
use crate::cluster::ClusterKind;

/// The kinds whose objects are shown.
const KINDS: [(&str, &str); 12] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("v1", "ReplicationController"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
];
const MAX_OBJECTS: usize = 30;
const MAX_STATUS_CHARS: usize = 400;
const MAX_EVENTS: usize = 40;
const LOG_LINES: usize = 15;

/// What cannot be read is said in its place: a description must not fail.
pub(super) async fn describe(scope: &Scope<'_>) -> String {
    let mut text = format!("--- namespace {} ---\n", scope.namespace());
    for (version, kind) in KINDS {
        let lines = objects(scope, version, kind).await;
        text.push_str(&lines.unwrap_or_else(|error| format!("{kind}: {error:#}\n")));
    }
    let lines = events(scope).await;
    text.push_str(&lines.unwrap_or_else(|error| format!("events: {error:#}\n")));
    if scope.cluster().kind() == ClusterKind::Local {
        for (name, tail) in scope.cluster().operator_logs(LOG_LINES).unwrap_or_default() {
            let _ = writeln!(text, "--- log of {name} ---\n{tail}");
        }
    }
    text
}

async fn objects(scope: &Scope<'_>, version: &str, kind: &str) -> Result<String> {
    let all = api(scope.client(), version, kind, scope.namespace()).await?;
    let list = all.list(&ListParams::default()).await.context("list")?;
    let mut text: String = list.items.iter().take(MAX_OBJECTS).map(|object| line(kind, object)).collect();
    if list.items.len() > MAX_OBJECTS {
        let _ = writeln!(text, "{kind}: {} more", list.items.len() - MAX_OBJECTS);
    }
    Ok(text)
}

fn line(kind: &str, object: &DynamicObject) -> String {
    let mut text = format!("{kind} {}", object.name_any());
    if let Some(generation) = object.metadata.generation {
        let _ = write!(text, " generation {generation}");
    }
    if let Some(replicas) = object.data.pointer("/spec/replicas") {
        let _ = write!(text, " replicas {replicas}");
    }
    if let Some(node) = object.data.pointer("/spec/nodeName").and_then(Value::as_str) {
        let _ = write!(text, " on {node}");
    }
    for owner in object.owner_references() {
        let _ = write!(text, " of {} {}", owner.kind, owner.name);
    }
    if object.metadata.deletion_timestamp.is_some() {
        let _ = write!(text, " being deleted, finalizers {:?}", object.finalizers());
    }
    if let Some(status) = object.data.get("status") {
        let status: String = status.to_string().chars().take(MAX_STATUS_CHARS).collect();
        let _ = write!(text, " {status}");
    }
    text.push('\n');
    text
}

async fn events(scope: &Scope<'_>) -> Result<String> {
    let mut events = scope.api::<Event>().list(&ListParams::default()).await.context("list")?.items;
    events.sort_by_key(|event| event.resource_version().and_then(|version| version.parse::<u64>().ok()));
    let skipped = events.len().saturating_sub(MAX_EVENTS);
    Ok(events[skipped..].iter().map(event_line).collect())
}

fn event_line(event: &Event) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let object = &event.involved_object;
    format!(
        "event {} {} {} {}: {} (x{})\n",
        text(&event.type_),
        text(&event.reason),
        text(&object.kind),
        text(&object.name),
        text(&event.message),
        event.count.unwrap_or(1)
    )
}
