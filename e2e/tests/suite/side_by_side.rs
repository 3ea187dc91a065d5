//! The same manifests under kube-controller-manager and under the operators: what is left must be the same.
//!
//! Every rollout here goes one pod at a time, so that each of its steps is the same whoever is faster.
//! Left out: who wrote (managedFields, the events' hosts), when, the order of events, and the value of pod-template-hash,
//! which is each implementation's own.

mod autoscaling;
pub(crate) mod batch;
mod clouds;
mod daemonset;
mod devices;
mod disruption;
mod identity;
mod nodes;
mod statefulset;
mod storage;

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Pod, ReplicationController};
use kube::ResourceExt;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::objects::{condition, revision};
use crate::support::scene::Namespaced;
use crate::support::{DEADLINE, Scene, deployment, operators, start_operators, template, with_cluster};

/// The fields that differ between any two runs.
const MASKED: [&str; 15] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "namespace",
    "lastTransitionTime",
    "lastUpdateTime",
    "startTime",
    "nodeName",
    "topology.kubernetes.io/zone",
    "lastProbeTime",
    "completionTime",
    "lastSuccessfulTime",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
];

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in MASKED {
                fields.remove(name);
            }
            fields.values_mut().for_each(mask);
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The hash of each template, and what to call it: the Deployment and the revision it belongs to.
async fn hashes(scene: &Scene) -> Result<Vec<(String, String)>> {
    let sets: Vec<ReplicaSet> = scene.list("").await?;
    let named = |set: &ReplicaSet| {
        let label = |name: &str| set.labels().get(name).cloned().unwrap_or_default();
        (label("pod-template-hash"), format!("<{} {}>", label("app"), revision(set)))
    };
    Ok(sets.iter().map(named).collect())
}

/// These lines with each hash under its other name, in order.
fn without_hashes(lines: Vec<String>, hashes: &[(String, String)]) -> Vec<String> {
    let replace = |line: String| hashes.iter().fold(line, |line, (hash, name)| line.replace(hash, name));
    let mut lines: Vec<String> = lines.into_iter().map(replace).collect();
    lines.sort();
    lines
}

/// Messages name pods, namespaces, and nodes that are called after these.
fn without_names(line: &str, scene: &Scene, pods: &[Pod]) -> String {
    let line = line.replace(&scene.namespace, "<namespace>");
    pods.iter().fold(line, |line, pod| match &pod.metadata.generate_name {
        Some(prefix) => line.replace(&pod.name_any(), &format!("{prefix}?")),
        None => line,
    })
}

/// "Created pod: web-5c6f8-x7k2p", "Found failed daemon pod default/web-x7k2p on node a": the last five letters of the
/// pod are random.
fn without_random(message: &str) -> String {
    let named = [" pod: ", " daemon pod "].into_iter().find_map(|words| Some(message.split_once(words)?.1));
    let pod = named.and_then(|named| named.split(' ').next()).unwrap_or_default();
    match pod.rsplit_once('-') {
        Some((prefix, _)) => message.replacen(pod, &format!("{prefix}-"), 1),
        None => message.to_owned(),
    }
}

async fn all<K: Namespaced + Serialize>(scene: &Scene) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for object in scene.list::<K>("").await? {
        let mut object = serde_json::to_value(object)?;
        mask(&mut object);
        objects.push(object);
    }
    Ok(objects)
}

/// A line for each of what is left.
async fn left(scene: &Scene) -> Result<Vec<String>> {
    let mut objects = all::<Deployment>(scene).await?;
    objects.extend(all::<ReplicaSet>(scene).await?);
    objects.extend(all::<ReplicationController>(scene).await?);
    let mut lines = Vec::new();
    for object in objects {
        lines.push(serde_json::to_string_pretty(&object)?);
    }
    let pods: Vec<Pod> = scene.list("").await?;
    for pod in &pods {
        let mut meta = serde_json::to_value(&pod.metadata)?;
        mask(&mut meta);
        meta["name"] = json!("?");
        lines.push(format!("Pod {meta}"));
    }
    Ok(without_hashes(lines, &hashes(scene).await?))
}

/// The events that these controllers have posted, in the order of their words.
async fn events(scene: &Scene, of_controllers: &[&str]) -> Result<Vec<String>> {
    let events: Vec<Event> = scene.list("").await?;
    let pods: Vec<Pod> = scene.list("").await?;
    let mut lines = Vec::new();
    for event in events {
        let component = event.source.clone().and_then(|source| source.component).unwrap_or_default();
        if !of_controllers.contains(&component.as_str()) {
            continue;
        }
        let about = &event.involved_object;
        let message = without_names(event.message.as_deref().unwrap_or_default(), scene, &pods);
        // Somebody else was faster, which may happen to either.
        if message.contains("the object has been modified") {
            continue;
        }
        let message = without_random(&message);
        lines.push(format!(
            "{component} {:?} {:?} {:?} {:?} {:?} {} {message}",
            about.api_version,
            about.kind,
            about.name,
            event.type_,
            event.reason,
            event.count.unwrap_or(0).min(2),
        ));
    }
    Ok(without_hashes(lines, &hashes(scene).await?))
}

/// Deployments that finished, that stalled, that are paused, and a ReplicationController.
pub(crate) async fn live(scene: &Scene) -> Result<()> {
    let mut web = deployment("web", 2);
    web["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 1, "maxUnavailable": 0});
    scene.apply(&web).await?;
    scene.rolled_out("web").await?;
    scene.kubectl("set env deployment/web STEP=2").await?;
    scene.rolled_out("web").await?;
    scene.kubectl("rollout undo deployment/web").await?;
    scene.rolled_out("web").await?;
    scene.kubectl("scale deployment/web --replicas=3").await?;
    scene.rolled_out("web").await?;

    let mut stalled = deployment("stalled", 1);
    stalled["spec"]["progressDeadlineSeconds"] = json!(1);
    stalled["spec"]["template"]["metadata"]["annotations"] = json!({"pods.e2e/becomes": "never-started"});
    scene.apply(&stalled).await?;
    waits_for(scene, "stalled", ("False", "ProgressDeadlineExceeded")).await?;

    let mut recreated = deployment("recreated", 2);
    recreated["spec"]["strategy"] = json!({"type": "Recreate"});
    scene.apply(&recreated).await?;
    scene.rolled_out("recreated").await?;
    scene.kubectl("set env deployment/recreated STEP=2").await?;
    scene.rolled_out("recreated").await?;
    scene.kubectl("rollout pause deployment/recreated").await?;
    waits_for(scene, "recreated", ("Unknown", "DeploymentPaused")).await?;

    scene
        .apply(&json!({
            "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "plain"},
            "spec": {"replicas": 2, "selector": {"app": "plain"}, "template": template("plain")},
        }))
        .await?;
    scene
        .wait_until("the ReplicationController is ready and its events are posted", DEADLINE, async || {
            let plain: ReplicationController = scene.fetch("plain").await?;
            ensure!(plain.status.is_some_and(|status| status.available_replicas == Some(2)), "not yet");
            let created = scene.events("SuccessfulCreate").await?;
            let created = created.iter().filter(|event| event.involved_object.name.as_deref() == Some("plain")).count();
            ensure!(created == 2, "{created} events");
            Ok(())
        })
        .await
}

async fn waits_for(scene: &Scene, name: &str, progressing: (&str, &str)) -> Result<()> {
    scene
        .wait_until(&format!("{name} is {progressing:?}"), DEADLINE, async || {
            let seen: Deployment = scene.fetch(name).await?;
            let found = condition(&seen, "Progressing");
            ensure!(found == Some(progressing), "{} is {found:?}", seen.name_any());
            Ok(())
        })
        .await
}

#[test]
fn the_operators_leave_what_upstream_leaves() -> Result<()> {
    compare(&live, &left, &["deployment-controller", "replicaset-controller", "replication-controller"])
}

/// Lives once under kube-controller-manager and once under the operators, and compares what is left.
fn compare(
    live: &impl AsyncFn(&Scene) -> Result<()>,
    left: &impl AsyncFn(&Scene) -> Result<Vec<String>>,
    of_controllers: &[&str],
) -> Result<()> {
    let told = async |scene: &Scene| events(scene, of_controllers).await;
    compare_on(ClusterOptions::with_controller_manager(), FEWEST, live, left, &told)
}

/// The least numbers of lines to compare. Two lives that left nothing would be the same.
#[derive(Clone, Copy)]
struct Fewest {
    events: usize,
    objects: usize,
}

const FEWEST: Fewest = Fewest { events: 11, objects: 11 };

/// As [`compare`], on a cluster of these options, with at least so many lines, and with the words in which `told` gives
/// the events.
fn compare_on(
    options: ClusterOptions,
    fewest: Fewest,
    live: &impl AsyncFn(&Scene) -> Result<()>,
    left: &impl AsyncFn(&Scene) -> Result<Vec<String>>,
    told: &impl AsyncFn(&Scene) -> Result<Vec<String>>,
) -> Result<()> {
    with_cluster(options, async |scene| {
        let upstream = scene.beside("upstream").await?;
        live(&upstream).await?;
        scene.cluster.stop_controller_manager().await?;
        // Now, for who starts may tell again of what it finds.
        let told_by_upstream = told(&upstream).await?;
        assert!(told_by_upstream.len() >= fewest.events, "{told_by_upstream:?}");
        scene
            .cluster
            .start_controller_manager(ControllerManager::without(operators().map(upstream_controller)))
            .await?;
        let _operators = start_operators(&scene.cluster, operators()).await?;
        let ours = scene.beside("ours").await?;
        live(&ours).await?;

        let expected = left(&upstream).await?;
        assert!(expected.len() >= fewest.objects, "{expected:?}");
        scene
            .wait_until("the same objects are left", DEADLINE, async || {
                let found = left(&ours).await?;
                ensure!(found == expected, "{}", difference(&expected, &found));
                Ok(())
            })
            .await?;
        scene
            .wait_until("the same events are posted", DEADLINE, async || {
                let found = told(&ours).await?;
                ensure!(found == told_by_upstream, "{}", difference(&told_by_upstream, &found));
                Ok(())
            })
            .await
    })
}

/// The lines that only one of two has.
fn difference(expected: &[String], found: &[String]) -> String {
    let lines =
        |entries: &[String]| entries.iter().flat_map(|entry| entry.lines().map(str::to_owned)).collect::<Vec<_>>();
    let (expected, mut found) = (lines(expected), lines(found));
    let mut only_expected = Vec::new();
    for line in expected {
        match found.iter().position(|other| *other == line) {
            Some(at) => drop(found.remove(at)),
            None => only_expected.push(line),
        }
    }
    format!("only upstream:\n{}\nonly ours:\n{}", only_expected.join("\n"), found.join("\n"))
}
