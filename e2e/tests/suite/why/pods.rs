//! Pods that are there and are not ready: what a kubelet, a scheduler and a container runtime say of them, written as they
//! write it.
//!
//! Left out: pulling images and running containers. Nothing here has a container runtime.

use anyhow::{Context, Result, ensure};
use e2e::cluster::kubelet;
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::workloads::of;
use super::{Row, becoming, play_family, row, web, with};
use crate::support::attachments::{MANAGED, answer, attachment_of, bound};
use crate::support::{DEADLINE, Scene, template, uid};

#[test]
fn pods_say_why_they_are_not_ready() -> Result<()> {
    play_family(&rows())
}

pub(super) fn rows() -> Vec<Row> {
    let [images, ended, before, placed, whole] = [images(), ended(), before(), placed(), whole()];
    images.into_iter().chain(ended).chain(before).chain(placed).chain(whole).collect()
}

fn images() -> Vec<Row> {
    vec![
        row(
            "An image does not exist",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: cannot pull image `registry.k8s.io/pause:3.10` (ImagePullBackOff): Back-off pulling image \"registry.k8s.io/pause:3.10\"",
            |scene| {
                waits(scene, "ImagePullBackOff", "Back-off pulling image \"registry.k8s.io/pause:3.10\"").boxed_local()
            },
        ),
        row(
            "An image name is invalid",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: cannot pull image `registry.k8s.io/pause:3.10` (InvalidImageName): couldn't parse image name",
            |scene| waits(scene, "InvalidImageName", "couldn't parse image name").boxed_local(),
        ),
        row(
            "A ConfigMap does not exist",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: cannot configure container main: configmap \"settings\" not found",
            |scene| waits(scene, "CreateContainerConfigError", "configmap \"settings\" not found").boxed_local(),
        ),
        row(
            "A container cannot be started",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: cannot start container main: exec: \"serve\": executable file not found in $PATH",
            |scene| {
                waits(scene, "RunContainerError", "exec: \"serve\": executable file not found in $PATH").boxed_local()
            },
        ),
    ]
}

fn ended() -> Vec<Row> {
    vec![
        row(
            "A container keeps exiting",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: container main keeps exiting (exit code 1, Error; 5 restarts)",
            |scene| async move { crashes(scene, &json!({}), "Error", 1).await }.boxed_local(),
        ),
        row(
            "A container exceeds its memory limit",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: container main exceeds its memory limit of 64Mi (5 restarts)",
            |scene| {
                let limits = json!({"limits": {"memory": "64Mi"}});
                let container = with(template("web")["spec"]["containers"][0].clone(), &json!({"resources": limits}));
                async move { crashes(scene, &json!({"spec": {"containers": [container]}}), "OOMKilled", 137).await }
                    .boxed_local()
            },
        ),
        row(
            "A node runs out of memory",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: container main was OOM-killed because its node ran out of memory (5 restarts)",
            |scene| async move { crashes(scene, &json!({}), "OOMKilled", 137).await }.boxed_local(),
        ),
        row(
            "An init container fails",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: container migrate keeps exiting (exit code 3, Error; 5 restarts)",
            |scene| initializes(scene, crashed("migrate", "Error", 3), 600).boxed_local(),
        ),
        row(
            "An init container runs past the progress deadline",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: init container migrate is running (0 of 1 done) (progress deadline exceeded)",
            |scene| {
                let running = json!({"name": "migrate", "state": {"running": {}}});
                async move { initializes(scene, running, 1).await }.boxed_local()
            },
        ),
    ]
}

fn before() -> Vec<Row> {
    vec![
        row(
            "A volume cannot be mounted",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: waiting for a volume: MountVolume.SetUp failed for volume \"data\": secret \"data\" not found",
            |scene| {
                told(scene, "FailedMount", "MountVolume.SetUp failed for volume \"data\": secret \"data\" not found")
                    .boxed_local()
            },
        ),
        row(
            "A volume cannot be attached",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: waiting for a volume: AttachVolume.Attach failed for volume \"*-data\" : no quota",
            |scene| unattached(scene, "no quota").boxed_local(),
        ),
        row(
            "No IP address is left for a pod",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: cannot create the pod sandbox: failed to allocate for range 0: no IP addresses available",
            |scene| {
                told(scene, "FailedCreatePodSandBox", "failed to allocate for range 0: no IP addresses available")
                    .boxed_local()
            },
        ),
        row(
            "A readiness probe fails",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: container main is not ready: Readiness probe failed: HTTP probe failed with statuscode: 503",
            |scene| unhealthy(scene).boxed_local(),
        ),
        row(
            "A pod is not ready, without a known reason",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: container main is not ready",
            |scene| {
                let template = json!({"metadata": becoming("never-ready")});
                async move { scene.apply(&web(1, &template)).await.map(drop) }.boxed_local()
            },
        ),
        row(
            "A readiness gate is not true",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: readiness gate e2e.example/balanced is not true",
            |scene| {
                let gates = json!([{"conditionType": "e2e.example/balanced"}]);
                applied(scene, web(1, &json!({"spec": {"readinessGates": gates}}))).boxed_local()
            },
        ),
    ]
}

fn placed() -> Vec<Row> {
    vec![
        row(
            "No node matches the node selector",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: unschedulable: 0/* nodes are available: …* node(s) didn't match Pod's node affinity/selector…",
            |scene| applied(scene, web(1, &json!({"spec": {"nodeSelector": {"disk": "none"}}}))).boxed_local(),
        ),
        row(
            "No node has enough CPU",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: unschedulable: 0/* nodes are available: …* Insufficient cpu…",
            |scene| {
                let resources = json!({"requests": {"cpu": "1000000"}});
                let container =
                    with(template("web")["spec"]["containers"][0].clone(), &json!({"resources": resources}));
                applied(scene, web(1, &json!({"spec": {"containers": [container]}}))).boxed_local()
            },
        ),
        row(
            "A PersistentVolumeClaim does not exist",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: unschedulable: 0/* nodes are available: persistentvolumeclaim \"data\" not found…",
            |scene| {
                let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
                applied(scene, web(1, &json!({"spec": {"volumes": volumes}}))).boxed_local()
            },
        ),
        row(
            "A scheduling gate is set",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: waiting for scheduling gate e2e.example/budget",
            |scene| {
                let gates = json!([{"name": "e2e.example/budget"}]);
                applied(scene, web(1, &json!({"spec": {"schedulingGates": gates}}))).boxed_local()
            },
        ),
        row(
            "Its scheduler does not run",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: not yet picked up by scheduler `fancy`",
            |scene| applied(scene, web(1, &json!({"spec": {"schedulerName": "fancy"}}))).boxed_local(),
        ),
    ]
}

fn whole() -> Vec<Row> {
    vec![
        row("A pod was evicted", "pod/web", "web: failed (Evicted): The node was low on resource: memory", |scene| {
            let status =
                json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
            async move {
                scene.apply(&pod(&becoming("never-started"), &json!({}))).await?;
                started(scene).await?;
                scene.patch_status::<Pod>("web", &json!({"status": status})).await.map(drop)
            }
            .boxed_local()
        }),
        row(
            "A node rejects a pod",
            "pod/web",
            "web: failed (OutOfcpu): Pod was rejected because the node has not enough cpu",
            |scene| applied(scene, pod(&becoming("refused"), &json!({}))).boxed_local(),
        ),
        row("A pod's node does not respond", "pod/web", "web: node * does not respond", |scene| {
            lost(scene).boxed_local()
        }),
    ]
}

async fn applied(scene: &Scene, object: Value) -> Result<()> {
    scene.apply(&object).await.map(drop)
}

/// A pod of nobody's.
fn pod(metadata: &Value, spec: &Value) -> Value {
    let pod = with(template("web"), &json!({"metadata": metadata, "spec": spec}));
    of("v1", "Pod", "web", &pod)
}

/// The name of the pod `app=web`, once kwok has done to it all that it will.
async fn started(scene: &Scene) -> Result<Pod> {
    scene
        .wait_until("a pod that a node has taken", DEADLINE, async || {
            let pod = scene.list::<Pod>("app=web").await?.pop().context("no pod")?;
            let status = pod.status.as_ref().context("it has no status")?;
            ensure!(status.start_time.is_some(), "{status:?}");
            Ok(pod)
        })
        .await
}

/// A Deployment of one such pod, and then this in the pod's status.
async fn becomes(scene: &Scene, deployment: &Value, status: &Value) -> Result<()> {
    let deployment = with(deployment.clone(), &json!({"spec": {"template": {"metadata": becoming("never-started")}}}));
    scene.apply(&deployment).await?;
    let pod = started(scene).await?;
    scene.patch_status::<Pod>(&pod.name_any(), &json!({"status": status})).await.map(drop)
}

/// The status of a container, with what a kubelet always writes.
fn container(name: &str, rest: &Value) -> Value {
    let image = "registry.k8s.io/pause:3.10";
    with(json!({"name": name, "image": image, "imageID": "", "ready": false, "restartCount": 0}), rest)
}

async fn waits(scene: &Scene, reason: &str, message: &str) -> Result<()> {
    let waiting = container("main", &json!({"state": {"waiting": {"reason": reason, "message": message}}}));
    becomes(scene, &web(1, &json!({})), &json!({"containerStatuses": [waiting]})).await
}

/// A container that waits to be started again after it ended so.
fn crashed(name: &str, reason: &str, code: i32) -> Value {
    let state =
        json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container"}});
    let last = json!({"terminated": {"exitCode": code, "reason": reason}});
    container(name, &json!({"restartCount": 5, "state": state, "lastState": last}))
}

async fn crashes(scene: &Scene, template: &Value, reason: &str, code: i32) -> Result<()> {
    becomes(scene, &web(1, template), &json!({"containerStatuses": [crashed("main", reason, code)]})).await
}

/// A pod whose init container is like this, of a Deployment with this progress deadline.
async fn initializes(scene: &Scene, status: Value, deadline: i32) -> Result<()> {
    let init = with(template("web")["spec"]["containers"][0].clone(), &json!({"name": "migrate"}));
    let deployment = web(1, &json!({"spec": {"initContainers": [init]}}));
    let deployment = with(deployment, &json!({"spec": {"progressDeadlineSeconds": deadline}}));
    let main = container("main", &json!({"state": {"waiting": {"reason": "PodInitializing"}}}));
    let init = container("migrate", &status);
    becomes(scene, &deployment, &json!({"initContainerStatuses": [init], "containerStatuses": [main]})).await
}

/// A kubelet's event about the pod.
async fn event(scene: &Scene, pod: &Pod, reason: &str, message: &str) -> Result<()> {
    let about = json!({
        "apiVersion": "v1", "kind": "Pod", "namespace": scene.namespace, "name": pod.name_any(), "uid": uid(pod),
    });
    let event = json!({"involvedObject": about, "type": "Warning", "reason": reason, "message": message});
    scene.apply(&of("v1", "Event", "told", &event)).await.map(drop)
}

/// A pod whose containers are being created, and what its kubelet tells of that.
async fn told(scene: &Scene, reason: &str, message: &str) -> Result<()> {
    waits(scene, "ContainerCreating", "").await?;
    event(scene, &started(scene).await?, reason, message).await
}

/// A pod on a node of its own, whose volume the driver fails to attach there.
async fn unattached(scene: &Scene, error: &str) -> Result<()> {
    let name = &scene.namespace;
    // The taint keeps the pods of DaemonSets away.
    let own = json!({"key": "e2e.example/attaching", "effect": "NoSchedule"});
    let node = json!({"metadata": {"annotations": {MANAGED: "true"}}, "spec": {"taints": [own]}});
    scene.apply(&of("v1", "Node", name, &with(kubelet(true), &node))).await?;
    let volume = bound(scene, "data").await?;
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let deployment = web(1, &json!({"spec": {"nodeName": name, "volumes": volumes}}));
    let waiting = container("main", &json!({"state": {"waiting": {"reason": "ContainerCreating"}}}));
    becomes(scene, &deployment, &json!({"containerStatuses": [waiting]})).await?;
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let attachment = attachment_of(scene, &attachments, &volume).await?;
    answer(&attachments, &attachment.name_any(), &json!({"message": error})).await
}

async fn unhealthy(scene: &Scene) -> Result<()> {
    scene.apply(&web(1, &json!({"metadata": becoming("never-ready")}))).await?;
    let pod = started(scene).await?;
    event(scene, &pod, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503").await
}

/// A pod on a node that nobody has heard of for long.
async fn lost(scene: &Scene) -> Result<()> {
    let name = &scene.namespace;
    scene.apply(&of("v1", "Node", name, &json!({"spec": {"unschedulable": true}}))).await?;
    let unknown = json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"});
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let status = kube::api::Patch::Merge(json!({"status": {"conditions": [unknown]}}));
    nodes.patch_status(name, &kube::api::PatchParams::default(), &status).await.context("set a node's status")?;
    applied(scene, pod(&json!({}), &json!({"nodeName": name}))).await
}
