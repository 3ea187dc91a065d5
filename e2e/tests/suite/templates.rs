//! Pod templates with the newest fields that the chosen version of the apiserver has: every pod gets them, whoever makes it.
//!
//! `KUBERNETES=1.37` shows it with fields that no part of this project names.

use anyhow::{Result, ensure};
use e2e::apply::api;
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use tools::is_newer_than_followed;

use crate::support::{DEADLINE, Scene, start_operators, template, with_cluster};

const OPERATORS: [&str; 7] = [
    "cronjob-operator",
    "daemonset-operator",
    "deployment-operator",
    "job-operator",
    "replicaset-operator",
    "replicationcontroller-operator",
    "statefulset-operator",
];
/// The gates of the fields below that are off by default.
const GATES: &str = "--feature-gates=AtomicWriteVolumeUserFields=true,EmptyDirVolumeMode=true,EvictionRequestAPI=true,\
                     GRPCContainerProbeTLS=true,H2CContainerProbe=true,VolumeBindMountOptions=true";

/// Fields of the spec of a pod. The pods name their node, because the scheduler passes over nodes that declare no support
/// for such fields.
fn newest() -> Value {
    if !is_newer_than_followed() {
        return json!({"nodeName": "node-0", "hostnameOverride": "newest.example"});
    }
    json!({
        "nodeName": "node-0",
        "hostnameOverride": "newest.example",
        "evictionResponders": [{"name": "example.com/responder", "priority": 10_000}],
        "containers": [{
            "livenessProbe": {"httpGet": {"port": 80, "protocol": "HTTP2"}},
            "readinessProbe": {"grpc": {"port": 81, "mode": "TLS"}},
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "bindMountOptions": ["noexec"]}],
        }],
        "volumes": [
            {"name": "tmp", "emptyDir": {"mode": 0o700}},
            {"name": "own", "configMap": {"name": "own", "optional": true, "defaultUser": 1000}},
        ],
    })
}

/// The value with these fields too.
fn merged(value: Value, fields: Value) -> Value {
    match (value, fields) {
        (Value::Object(mut object), Value::Object(fields)) => {
            for (name, field) in fields {
                let known = object.remove(&name).unwrap_or_default();
                object.insert(name, merged(known, field));
            }
            Value::Object(object)
        }
        (Value::Array(items), Value::Array(fields)) if items.len() == fields.len() => {
            Value::Array(items.into_iter().zip(fields).map(|(item, fields)| merged(item, fields)).collect())
        }
        (_, fields) => fields,
    }
}

/// Whether all of these fields are in the value; lists may have more items at the end.
fn has(value: &Value, fields: &Value) -> bool {
    match (value, fields) {
        (Value::Object(value), Value::Object(fields)) => {
            fields.iter().all(|(name, field)| value.get(name).is_some_and(|value| has(value, field)))
        }
        (Value::Array(value), Value::Array(fields)) => {
            value.len() >= fields.len() && value.iter().zip(fields).all(|(value, field)| has(value, field))
        }
        _ => value == fields,
    }
}

/// A workload with this name, whose pods have the newest fields and are labelled `app=NAME`.
fn workload(kind: &str, fields: Value) -> Value {
    let (api_version, name) = (if kind == "ReplicationController" { "v1" } else { "apps/v1" }, kind.to_lowercase());
    let selector =
        if kind == "ReplicationController" { json!({"app": name}) } else { json!({"matchLabels": {"app": name}}) };
    let spec = json!({"selector": selector, "template": merged(template(&name), json!({"spec": newest()}))});
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": merged(spec, fields)})
}

/// A Job's spec.
fn job(name: &str) -> Value {
    let template = merged(template(name), json!({"spec": newest()}));
    json!({"template": merged(template, json!({"spec": {"restartPolicy": "Never"}}))})
}

/// Waits until a workload has at least so many pods, and all of them the newest fields and this annotation.
async fn made(scene: &Scene, name: &str, pods: usize, step: &Value) -> Result<()> {
    let all: Api<DynamicObject> = api(&scene.client, "v1", "Pod", &scene.namespace).await?;
    scene
        .wait_until(&format!("{name} has {pods} pods with the newest fields"), DEADLINE, async || {
            let found = all.list(&ListParams::default().labels(&format!("app={name}"))).await?.items;
            let is_made = |pod: &DynamicObject| {
                let annotation = pod.metadata.annotations.iter().flatten().find(|(key, _)| *key == "step");
                json!(annotation.map(|(_, step)| step)) == *step && has(&pod.data["spec"], &newest())
            };
            ensure!(found.len() >= pods && found.iter().all(is_made), "{found:?}");
            Ok(())
        })
        .await
}

#[test]
fn every_pod_has_the_newest_fields_of_its_template() -> Result<()> {
    let gates = is_newer_than_followed().then(|| GATES.to_owned());
    let options =
        ClusterOptions { nodes: 1, apiserver_flags: gates.into_iter().collect(), ..ClusterOptions::default() };
    with_cluster(options, async |scene| {
        let _operators = start_operators(&scene.cluster, OPERATORS).await?;
        let parallel = json!({"replicas": 2, "serviceName": "none", "podManagementPolicy": "Parallel",
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}});
        let workloads = [
            ("Deployment", json!({"replicas": 1}), 1),
            ("ReplicationController", json!({"replicas": 1}), 1),
            ("StatefulSet", parallel, 2),
            ("DaemonSet", json!({}), 1),
        ];
        for (kind, fields, _) in &workloads {
            scene.apply(&workload(kind, fields.clone())).await?;
        }
        let meta = |name: &str| json!({"name": name});
        scene
            .apply(&json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta("job"), "spec": job("job")}))
            .await?;
        let spec =
            json!({"schedule": "@every 1s", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job("cronjob")}});
        let cronjob = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta("cronjob"), "spec": spec});
        scene.apply(&cronjob).await?;
        for (kind, _, pods) in &workloads {
            made(scene, &kind.to_lowercase(), *pods, &Value::Null).await?;
        }
        for name in ["job", "cronjob"] {
            made(scene, name, 1, &Value::Null).await?;
        }

        // The pods of a rolling update, and that of an earlier revision, which is read from its ControllerRevision.
        let step = json!({"spec": {"template": {"metadata": {"annotations": {"step": "1"}}}}});
        let held = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2, "partition": 2}}});
        scene.patch::<StatefulSet>("statefulset", &json!({"spec": held})).await?;
        scene.patch::<StatefulSet>("statefulset", &step).await?;
        scene.patch::<Deployment>("deployment", &step).await?;
        scene.patch::<DaemonSet>("daemonset", &step).await?;
        for name in ["deployment", "daemonset"] {
            made(scene, name, 1, &json!("1")).await?;
        }
        scene.delete_pod("statefulset-0").await?;
        made(scene, "statefulset", 2, &Value::Null).await?;
        let all = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2, "partition": 0}}});
        scene.patch::<StatefulSet>("statefulset", &json!({"spec": all})).await?;
        made(scene, "statefulset", 2, &json!("1")).await
    })
}
