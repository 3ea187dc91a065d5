//! A thousand objects of every kind that the operators act on, at rest under kube-controller-manager, and what somebody
//! does to a few of them while nobody looks after them.
//!
//! Left out: objects that never come to rest.

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ReplicationController};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::batch::job;
use crate::support::scene::Namespaced;
use crate::support::{DEADLINE, Scene, deployment, template};

/// How many of each kind.
const DEPLOYMENTS: usize = 200;
const SETS: usize = 150;
const CONTROLLERS: usize = 100;
const JOBS: usize = 150;
const CRON_JOBS: usize = 50;
const SERVICES: usize = 250;
const OWNED: usize = 50;
const NAMESPACES: usize = 50;
/// How many are made at a time.
const AT_ONCE: usize = 20;
/// The annotation of a Node that says how long its kubelet may cache what its pods use.
const TTL: &str = "node.alpha.kubernetes.io/ttl";

fn set(api_version: &str, kind: &str, name: &str, selector: &Value) -> Value {
    let spec = json!({"replicas": 1, "selector": selector, "template": template(name)});
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn cron_job(name: &str) -> Value {
    let template = job("x", 1, 1)["spec"].clone();
    let spec = json!({"schedule": "30 4 2 1 *", "jobTemplate": {"spec": template}});
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec})
}

fn service(name: &str, app: &str) -> Value {
    let spec = json!({"selector": {"app": app}, "ports": [{"port": 80}]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn owned(name: &str, kind: &str, owner: &str, uid: &str) -> Value {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    let owner = json!({"apiVersion": api_version, "kind": kind, "name": owner, "uid": uid});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [owner]}})
}

/// A pod that no node is right for, and that a finalizer holds.
fn nowhere() -> Value {
    let mut spec = template("nowhere")["spec"].clone();
    spec["nodeSelector"] = json!({"no-node-has": "this"});
    let metadata = json!({"name": "nowhere", "finalizers": ["e2e.example/hold"]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// All of them but those that need another one's uid.
fn independent() -> Vec<Value> {
    let namespace = |n| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("shadow-{n}")}});
    let replica_set = |n| {
        let name = format!("set-{n}");
        set("apps/v1", "ReplicaSet", &name, &json!({"matchLabels": {"app": name}}))
    };
    let controller = |n| {
        let name = format!("rc-{n}");
        set("v1", "ReplicationController", &name, &json!({"app": name}))
    };
    (0..DEPLOYMENTS)
        .map(|n| deployment(&format!("web-{n}"), 1))
        .chain((0..SETS).map(replica_set))
        .chain((0..CONTROLLERS).map(controller))
        .chain((0..JOBS).map(|n| job(&format!("job-{n}"), 1, 1)))
        .chain((0..CRON_JOBS).map(|n| cron_job(&format!("cron-{n}"))))
        .chain((0..SERVICES).map(|n| service(&format!("service-{n}"), &format!("web-{n}"))))
        .chain((0..NAMESPACES).map(namespace))
        .collect()
}

/// Makes all of them, and waits until kube-controller-manager has done its work.
pub(super) async fn make(scene: &Scene) -> Result<()> {
    let apply = async |object: Value| scene.apply(&object).await.map(drop);
    stream::iter(independent()).map(Ok).try_for_each_concurrent(AT_ONCE, apply).await?;
    let owner = scene.fetch::<Deployment>("web-0").await?.uid().unwrap_or_default();
    let owned = (0..OWNED).map(|n| owned(&format!("owned-{n}"), "Deployment", "web-0", &owner));
    stream::iter(owned).map(Ok).try_for_each_concurrent(AT_ONCE, apply).await?;
    scene
        .wait_until("kube-controller-manager has done its work", 3 * DEADLINE, async || {
            let found = [
                count::<Deployment>(scene, "/status/availableReplicas").await?,
                count::<ReplicaSet>(scene, "/status/availableReplicas").await?,
                count::<ReplicationController>(scene, "/status/availableReplicas").await?,
                count::<Job>(scene, "/status/succeeded").await?,
            ];
            ensure!(found == [DEPLOYMENTS, DEPLOYMENTS + SETS, CONTROLLERS, JOBS], "{found:?}");
            Ok(())
        })
        .await
}

/// How many have a 1 there.
async fn count<K: Namespaced + serde::Serialize>(scene: &Scene, pointer: &str) -> Result<usize> {
    let objects = scene.list::<K>("").await?;
    let objects = objects.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
    Ok(objects.iter().filter(|object| object.pointer(pointer) == Some(&json!(1))).count())
}

/// Somebody does something to a few objects; gives how the difference that each leads to begins.
pub(super) async fn tamper(scene: &Scene) -> Result<Vec<String>> {
    let ns = &scene.namespace;
    let pod = first::<Pod>(scene, "app=set-0").await?;
    scene.patch::<Pod>(&pod, &json!({"metadata": {"labels": {"app": null}}})).await?;
    let slice = first::<EndpointSlice>(scene, "kubernetes.io/service-name=service-5").await?;
    scene.patch::<EndpointSlice>(&slice, &json!({"endpoints": []})).await?;
    scene.patch_status::<Deployment>("web-1", &json!({"status": {"updatedReplicas": 0}})).await?;
    scene
        .patch_status::<ReplicationController>("rc-0", &json!({"status": {"readyReplicas": 0, "availableReplicas": 0}}))
        .await?;
    let stranger = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "namespace": ns,
        "uid": "7d0f0000-0000-4000-8000-000000000000"});
    scene.patch_status::<CronJob>("cron-0", &json!({"status": {"active": [stranger]}})).await?;
    scene.patch::<Job>("job-0", &json!({"spec": {"ttlSecondsAfterFinished": 0}})).await?;
    scene.apply(&job("made", 1, 1)).await?;
    scene.apply(&owned("left", "ConfigMap", "gone", "7d0f0000-0000-4000-8000-000000000001")).await?;
    scene.cluster.kubectl("--namespace shadow-0 delete serviceaccount/default".split(' ')).await?;
    scene.cluster.kubectl("--namespace shadow-0 delete configmap/kube-root-ca.crt".split(' ')).await?;
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    namespaces.delete("shadow-1", &DeleteParams::background()).await?;
    scene.apply(&nowhere()).await?;
    scene.kubectl("delete pod/nowhere --wait=false").await?;
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let other = Patch::Merge(json!({"metadata": {"annotations": {TTL: "7"}}}));
    nodes.patch("node-0", &PatchParams::default(), &other).await?;
    Ok(vec![
        format!("replicaset-operator patch pods {ns}/{pod}: metadata.ownerReferences[uid="),
        format!("endpointslice-operator patch endpointslices.discovery.k8s.io {ns}/{slice}: endpoints"),
        format!("deployment-operator patch deployments.apps/status {ns}/web-1: status.updatedReplicas: "),
        format!(
            "replicationcontroller-operator patch replicationcontrollers/status {ns}/rc-0: status.availableReplicas: "
        ),
        format!("cronjob-operator patch cronjobs.batch/status {ns}/cron-0: status.active"),
        format!("ttl-after-finished-operator delete jobs.batch {ns}/job-0: "),
        format!("job-operator create pods {ns}/made-: "),
        format!("garbage-collector-operator delete configmaps {ns}/left: "),
        "serviceaccount-operator create serviceaccounts shadow-0/default: ".to_owned(),
        "root-ca-certificate-publisher-operator create configmaps shadow-0/kube-root-ca.crt: ".to_owned(),
        "namespace-operator deletecollection ".to_owned(),
        format!("pod-garbage-collector-operator patch pods/status {ns}/nowhere: status."),
        format!("ttl-operator patch nodes node-0: metadata.annotations[{TTL}]: "),
    ])
}

async fn first<K: Namespaced>(scene: &Scene, selector: &str) -> Result<String> {
    let found = scene.list::<K>(selector).await?;
    ensure!(!found.is_empty(), "nothing has {selector}");
    Ok(found[0].name_any())
}
