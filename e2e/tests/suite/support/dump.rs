//! The state of a test that failed: its objects, its events, and the end of each operator's log.
//! Left out: objects outside its namespace.

use std::fmt::Write;

use anyhow::{Context, Result};
use e2e::apply::api;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;

use super::scene::Scene;

/// The kinds whose objects are shown; events come last, as they are read last.
const KINDS: [(&str, &str); 13] = [
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
    ("v1", "Event"),
];
const LOG_LINES: usize = 12;
/// Of each kind, or a cluster of pods would bury the rest.
const OBJECTS: usize = 30;
const STATUS_CHARS: usize = 400;

/// Never fails: what cannot be read is said in its place.
pub(super) async fn dump(scene: &Scene) -> String {
    let mut text = format!("---- namespace {}\n", scene.namespace);
    for (api_version, kind) in KINDS {
        let shown = objects(scene, api_version, kind).await;
        text.push_str(&shown.unwrap_or_else(|error| format!("-- no list of {kind}: {error:#}\n")));
    }
    for (name, tail) in scene.cluster.operator_logs(LOG_LINES).unwrap_or_default() {
        let _ = writeln!(text, "---- log of {name}\n{tail}");
    }
    text
}

/// The newest objects of a kind, oldest first; nothing where there are none.
async fn objects(scene: &Scene, api_version: &str, kind: &str) -> Result<String> {
    let api = api(&scene.client, api_version, kind, &scene.namespace).await?;
    let mut objects = api.list(&ListParams::default()).await.context("list")?.items;
    objects.sort_by_key(|object| object.resource_version().and_then(|version| version.parse::<u64>().ok()));
    let mut text = if objects.is_empty() { String::new() } else { format!("-- {} of {kind}\n", objects.len()) };
    for object in &objects[objects.len().saturating_sub(OBJECTS)..] {
        text.push_str(&if kind == "Event" { event(object) } else { line(object) });
    }
    Ok(text)
}

fn event(object: &DynamicObject) -> String {
    let (data, about) = (&object.data, &object.data["involvedObject"]);
    let [type_, reason, message] = ["type", "reason", "message"].map(|field| data[field].as_str().unwrap_or(""));
    let [kind, name] = ["kind", "name"].map(|field| about[field].as_str().unwrap_or(""));
    format!("{type_} {reason} {kind} {name}: {message} (x{})\n", data["count"].as_u64().unwrap_or(1))
}

fn line(object: &DynamicObject) -> String {
    let mut text = object.name_any();
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
        let status: String = status.to_string().chars().take(STATUS_CHARS).collect();
        let _ = write!(text, " {status}");
    }
    text.push('\n');
    text
}
