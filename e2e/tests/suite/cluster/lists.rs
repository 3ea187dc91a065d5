//! Lists and watches as protobuf say what they say as JSON: of pods in every shape, and of the metadata of any kind.
//!
//! Left out: fields that nobody reads, and the views, whose own tests read each of their pods in both forms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use http::Request;
use http::header::ACCEPT;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::api::protobuf::{self, Frame};
use shared::controllers::replicas::pod::Pod as ReplicaPod;

use super::tree::{HOLD, define};
use crate::support::{DEADLINE, Scene, with_cluster};

/// Every field that is read of a pod; the entries of a list, and the values of a map, count as one.
const POD_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.generateName",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.labels",
    "metadata.annotations",
    "metadata.ownerReferences.apiVersion",
    "metadata.ownerReferences.kind",
    "metadata.ownerReferences.name",
    "metadata.ownerReferences.uid",
    "metadata.ownerReferences.controller",
    "metadata.ownerReferences.blockOwnerDeletion",
    "metadata.finalizers",
    "spec.containers.name",
    "spec.containers.ports.name",
    "spec.containers.ports.containerPort",
    "spec.containers.ports.protocol",
    "spec.initContainers.name",
    "spec.initContainers.restartPolicy",
    "spec.terminationGracePeriodSeconds",
    "spec.nodeName",
    "spec.hostname",
    "spec.subdomain",
    "status.phase",
    "status.reason",
    "status.podIP",
    "status.podIPs.ip",
    "status.conditions.type",
    "status.conditions.status",
    "status.conditions.lastTransitionTime",
    "status.conditions.reason",
    "status.conditions.message",
    "status.containerStatuses.name",
    "status.containerStatuses.restartCount",
    "status.containerStatuses.state.terminated.exitCode",
    "status.containerStatuses.state.terminated.finishedAt",
    "status.initContainerStatuses.name",
    "status.initContainerStatuses.restartCount",
];

/// A list, or a watch that ends soon, in one of its forms.
async fn fetch(scene: &Scene, path: &str, accept: &str) -> Result<Vec<u8>> {
    let request = Request::get(path).header(ACCEPT, accept).body(Body::empty())?;
    let answer = scene.client.send(request).await.with_context(|| format!("list {path}"))?;
    ensure!(answer.status().is_success(), "{path} as {accept}: {}", answer.status());
    Ok(answer.into_body().collect_bytes().await?.to_vec())
}

/// All fields there are, such as `metadata.name`.
fn note_fields(value: &Value, path: &str, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) if !is_map(path) => {
            fields.insert(path.to_owned());
            for (name, value) in object {
                note_fields(value, &child(path, name), fields);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| note_fields(item, path, fields)),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            fields.insert(path.to_owned());
        }
    }
}

fn is_map(path: &str) -> bool {
    matches!(path, "metadata.labels" | "metadata.annotations")
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The same object with these fields only.
fn only(value: &Value, path: &str, fields: &BTreeSet<String>) -> Value {
    match value {
        Value::Object(object) if !is_map(path) => {
            let kept = object.iter().filter(|(name, _)| fields.contains(&child(path, name)));
            kept.map(|(name, value)| (name.clone(), only(value, &child(path, name), fields))).collect()
        }
        Value::Array(items) => items.iter().map(|item| only(item, path, fields)).collect(),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Compares the forms of a list, object by object; gives the objects, and the fields that any of them has as protobuf.
async fn compare(scene: &Scene, path: &str, as_kind: &str) -> Result<(Vec<(Value, Value)>, BTreeSet<String>)> {
    scene
        .wait_until(&format!("{path} says the same in both forms"), DEADLINE, async || {
            let json = fetch(scene, path, &format!("application/json{as_kind}")).await?;
            let json: Value = serde_json::from_slice(&json)?;
            let json = json["items"].as_array().context("no items")?.clone();
            let body = fetch(scene, path, &format!("application/vnd.kubernetes.protobuf{as_kind}")).await?;
            let (_, items) = protobuf::list(&body)?;
            ensure!(items.len() == json.len(), "{} objects as protobuf, {} as JSON", items.len(), json.len());
            let (mut objects, mut fields) = (Vec::new(), BTreeSet::new());
            for (item, json) in items.into_iter().zip(json) {
                let read = Value::deserialize(item)?;
                note_fields(&read, "", &mut fields);
                objects.push((read, json));
                if as_kind.is_empty() && path.ends_with("/pods") {
                    let (_, json) = objects.last().context("none")?;
                    let (one, other) = (ReplicaPod::deserialize(item)?, ReplicaPod::deserialize(json)?);
                    ensure!(one == other, "{one:?} as protobuf, {other:?} as JSON");
                }
            }
            for (read, json) in &objects {
                let json = only(json, "", &fields);
                ensure!(*read == json, "{read} as protobuf, {json} as JSON");
            }
            Ok((objects, fields))
        })
        .await
}

/// A pod that no node has, so that nobody but this test says how it fares.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "image"}]},
    })
}

/// A pod of which everything is said.
fn rich_pod() -> Value {
    let mut rich = pod("rich");
    rich["metadata"] = json!({
        "name": "rich", "generateName": "ri-",
        "labels": {"app.kubernetes.io/odd_Key.9": "a-B_c.9", "empty": "", "x": "1"},
        "annotations": {"note": "\u{1F980} \"quoted\"\n\\ <&>", "empty": "", "controller.kubernetes.io/pod-deletion-cost": "-7"},
        "finalizers": ["example.com/first", "example.com/second"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "not a uuid"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "11111111-2222-4333-8444-555555555555",
             "controller": true, "blockOwnerDeletion": false},
        ],
    });
    rich["spec"]["hostname"] = "host".into();
    rich["spec"]["subdomain"] = "web".into();
    rich["spec"]["terminationGracePeriodSeconds"] = 7.into();
    rich["spec"]["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    rich["spec"]["containers"] = json!([
        {"name": "main", "image": "image", "ports": [{"name": "http", "containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]},
        {"name": "beside", "image": "image"},
    ]);
    rich["spec"]["initContainers"] = json!([
        {"name": "setup", "image": "image"}, {"name": "sidecar", "image": "image", "restartPolicy": "Always"},
    ]);
    rich
}

fn rich_status() -> Value {
    let status = |name: &str, restarts: i32, state: Value| json!({"name": name, "image": "image", "imageID": "", "ready": false, "restartCount": restarts, "state": state});
    let ended = |code: i32| json!({"terminated": {"exitCode": code, "finishedAt": "2026-01-02T03:04:05Z"}});
    json!({
        "phase": "Failed", "reason": "Evicted", "message": "the node was low on memory",
        "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}, {"ip": "fd00::a"}],
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "PodFailed", "message": "why", "lastTransitionTime": "2026-01-02T03:04:05Z"},
            {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": null},
            {"type": "example.com/gate", "status": "Unknown", "lastTransitionTime": "1970-01-01T00:00:00Z"},
        ],
        "containerStatuses": [status("main", 3, ended(137)), status("beside", 0, ended(0))],
        "initContainerStatuses": [
            status("setup", 0, json!({"terminated": {"exitCode": 0}})), status("sidecar", 2_147_483_647, json!({"running": {}})),
        ],
    })
}

async fn make_pods(scene: &Scene) -> Result<()> {
    scene.apply(&rich_pod()).await?;
    scene.patch_status::<Pod>("rich", &json!({"status": rich_status()})).await?;
    for phase in ["Pending", "Running", "Succeeded", "Failed", "Unknown"] {
        let name = phase.to_lowercase();
        scene.apply(&pod(&name)).await?;
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let status = Patch::Merge(json!({"status": {"phase": phase, "conditions": ready}}));
        scene.api::<Pod>().patch_status(&name, &PatchParams::default(), &status).await?;
    }
    let mut ending = pod("ending");
    ending["metadata"]["finalizers"] = json!([HOLD]);
    ending["spec"]["schedulerName"] = "default-scheduler".into();
    scene.apply(&ending).await?;
    scene
        .wait_until("the pod runs", DEADLINE, async || {
            let pod: Pod = scene.fetch("ending").await?;
            let phase = pod.status.and_then(|status| status.phase);
            ensure!(phase.as_deref() == Some("Running"), "{phase:?}");
            Ok(())
        })
        .await?;
    scene.api::<Pod>().delete("ending", &DeleteParams::default()).await?;
    Ok(())
}

/// Compares the forms of a watch from the beginning: the events of the same objects.
async fn compare_watches(scene: &Scene, path: &str, as_kind: &str) -> Result<()> {
    let path = format!("{path}?watch=1&resourceVersion=0&timeoutSeconds=1");
    let what = format!("{path} says the same in both forms");
    let compared = async || {
        let json = fetch(scene, &path, &format!("application/json{as_kind}")).await?;
        let json = json.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let json: BTreeMap<String, Value> = json
            .map(|line| {
                let event: Value = serde_json::from_slice(line)?;
                Ok((about(&event["type"], &event["object"]), event["object"].clone()))
            })
            .collect::<Result<_>>()?;
        let body = fetch(scene, &path, &format!("application/vnd.kubernetes.protobuf{as_kind}")).await?;
        let read = read_events(&body)?;
        ensure!(!read.is_empty() && read.len() == json.len(), "{} events as protobuf, {json:?} as JSON", read.len());
        for (about, object) in read {
            let mut fields = BTreeSet::new();
            note_fields(&object, "", &mut fields);
            let json = only(json.get(&about).with_context(|| format!("no {about} as JSON"))?, "", &fields);
            ensure!(object == json, "{object} as protobuf, {json} as JSON");
        }
        Ok(())
    };
    scene.wait_until(&what, DEADLINE, compared).await
}

fn about(kind: &Value, object: &Value) -> String {
    format!("{kind} {} {}", object["metadata"]["namespace"], object["metadata"]["name"])
}

fn read_events(mut body: &[u8]) -> Result<Vec<(String, Value)>> {
    let mut events = Vec::new();
    while let Frame::Of(length) = protobuf::frame(body) {
        let (frame, rest) = body.split_at_checked(Frame::whole(length)).context("half an event")?;
        let (kind, object) = protobuf::event(Frame::content(frame))?;
        let object = Value::deserialize(protobuf::object(object)?)?;
        events.push((about(&kind.into(), &object), object));
        body = rest;
    }
    ensure!(body.is_empty(), "{} bytes are no event", body.len());
    Ok(events)
}

#[test]
fn the_tables_of_protobuf_follow_from_upstreams_types() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("go")
        .args(["run", "-C"])
        .arg(root.join("tools/kubernetes"))
        .args(["-buildvcs=false", "./protobuf"])
        .env("CGO_ENABLED", "0")
        .output()
        .context("run go")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = root.join("../shared/src/api/protobuf/tables/generated.rs");
    let written = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    ensure!(written == output.stdout, "{} is out of date: make protobuf writes it", path.display());
    Ok(())
}

#[test]
fn lists_and_watches_as_protobuf_say_what_they_say_as_json() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 1, ..ClusterOptions::default() }, async |scene| {
        make_pods(scene).await?;
        let pods = format!("/api/v1/namespaces/{}/pods", scene.namespace);
        let (objects, fields) = compare(scene, &pods, "").await?;
        let missing: Vec<&&str> = POD_FIELDS.iter().filter(|field| !fields.contains(**field)).collect();
        ensure!(missing.is_empty(), "no pod has {missing:?}: {objects:?}");
        compare_watches(scene, &pods, "").await?;

        let kind = define(scene, "Gadget").await?;
        let gadget = json!({
            "apiVersion": kind.api_version, "kind": kind.kind, "spec": {"size": 3},
            "metadata": {"name": "one", "labels": {"a": "b"}, "finalizers": [HOLD]},
        });
        scene.apply(&gadget).await?;
        scene.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"}})).await?;
        let group = format!("/apis/{}/namespaces/{}/gadgets", kind.api_version, scene.namespace);
        let config_maps = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for path in [&*pods, &*group, &*config_maps, "/api/v1/nodes", "/api/v1/namespaces", definitions] {
            let metadata_only = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
            let (objects, _) = compare(scene, path, metadata_only).await?;
            ensure!(!objects.is_empty(), "nothing in {path}");
            compare_watches(scene, path, ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1").await?;
        }
        Ok(())
    })
}
