//! A pod's volume is attached to a node without a kubelet, after failures that its driver reports, and detached when the
//! pod is gone. The test plays the driver's attacher.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, template};

const NODE: &str = "e2e-attaching";
const DRIVER: &str = "attach.e2e.example";
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

pub(super) const NEEDS: &[&str] = &["persistentvolume-protection-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": NODE, "annotations": {MANAGED: "true"}}}))?;
    nodes.create(&PostParams::default(), &node).await.context("create a node")?;
    let volume = bound(scene, "data").await?;
    scene.apply(&pod()).await?;
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let name = attachment_of(scene, &attachments, &volume).await?;
    scene
        .wait_until("the driver's failures are told, and the event counted up", DEADLINE, async || {
            answer(&attachments, &name, &json!({"message": "no quota", "time": Timestamp::now().to_string()})).await?;
            let events: Vec<Event> = scene.events("FailedAttachVolume").await?;
            let most = events.iter().filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    answer(&attachments, &name, &Value::Null).await?;
    scene
        .wait_until("the node reports the volume", DEADLINE, async || {
            let attached = nodes.get(NODE).await?.status.and_then(|status| status.volumes_attached).unwrap_or_default();
            ensure!(attached.iter().any(|attached| attached.name.ends_with(&volume)), "{attached:?}");
            Ok(())
        })
        .await?;
    scene.kubectl("delete pod/web").await?;
    scene
        .wait_until("the volume is detached", DEADLINE, async || {
            let found = attachments.get_opt(&name).await?;
            ensure!(found.is_none(), "{found:?}");
            Ok(())
        })
        .await?;
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    volumes.delete(&volume, &DeleteParams::default()).await.map(drop).context("delete the volume")?;
    nodes.delete(NODE, &DeleteParams::default()).await.map(drop).context("delete the node")
}

/// The name of the VolumeAttachment for this volume.
async fn attachment_of(scene: &Scene, attachments: &Api<VolumeAttachment>, volume: &str) -> Result<String> {
    let mut name = String::new();
    scene
        .wait_until("the volume is to be attached", DEADLINE, async || {
            let all = attachments.list(&ListParams::default()).await?;
            let is_of = |found: &&VolumeAttachment| found.spec.source.persistent_volume_name.as_deref() == Some(volume);
            let found = all.items.iter().find(is_of).context("there is no VolumeAttachment")?;
            ensure!(found.spec.attacher == DRIVER && found.spec.node_name == NODE, "{found:?}");
            name = found.name_any();
            Ok(())
        })
        .await?;
    Ok(name)
}

/// Answers as the driver's attacher: with this failure, or that the volume is attached.
async fn answer(attachments: &Api<VolumeAttachment>, name: &str, error: &Value) -> Result<()> {
    let status = json!({"attached": error.is_null(), "attachError": error});
    let patch = Patch::Merge(json!({"status": status}));
    attachments.patch_status(name, &PatchParams::default(), &patch).await.map(drop).context("answer as the attacher")
}

/// A claim and its volume, bound to each other; gives the volume's name.
async fn bound(scene: &Scene, name: &str) -> Result<String> {
    let volume = format!("{}-{name}", scene.namespace);
    let size = json!({"storage": "1Gi"});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, "volumeName": volume,
        "storageClassName": "e2e-none"});
    scene
        .apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}))
        .await?;
    let claim: PersistentVolumeClaim = scene.fetch(name).await?;
    let claim_ref = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": scene.namespace,
        "name": name, "uid": claim.uid()});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": size, "claimRef": claim_ref,
        "storageClassName": "e2e-none", "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": DRIVER, "volumeHandle": volume}});
    let object = serde_json::from_value(json!({"metadata": {"name": volume}, "spec": spec}))?;
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    volumes.create(&PostParams::default(), &object).await.context("create the volume")?;
    let status = json!({"status": {"phase": "Bound", "capacity": size, "accessModes": ["ReadWriteOnce"]}});
    scene.patch_status::<PersistentVolumeClaim>(name, &status).await.context("bind the claim")?;
    Ok(volume)
}

fn pod() -> Value {
    let mut spec = template("web")["spec"].clone();
    spec["nodeName"] = json!(NODE);
    spec["terminationGracePeriodSeconds"] = json!(0);
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let lost = json!([{"name": format!("kubernetes.io/csi/{DRIVER}^lost"), "devicePath": ""}]);
    let patch = Patch::Merge(json!({"status": {"volumesAttached": lost}}));
    nodes.patch_status("node-0", &PatchParams::default(), &patch).await?;
    Ok("patch nodes/status node-0: status.volumesAttached".to_owned())
}
