//! Volumes of a CSI driver that no program plays: tests answer as its attacher.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::{DEADLINE, Scene};

pub(crate) const DRIVER: &str = "attach.e2e.example";
/// The annotation of nodes whose volumes are attached for them.
pub(crate) const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

/// A claim and its volume of [`DRIVER`], bound to each other; gives the volume's name.
pub(crate) async fn bound(scene: &Scene, name: &str) -> Result<String> {
    let handle = format!("{}-{name}", scene.namespace);
    bound_to(scene, name, "1Gi", ("csi", json!({"driver": DRIVER, "volumeHandle": handle}))).await
}

/// A claim for so much and its volume of 1Gi with this source, bound to each other; gives the volume's name.
pub(crate) async fn bound_to(
    scene: &Scene,
    name: &str,
    request: &str,
    (plugin, source): (&str, Value),
) -> Result<String> {
    let volume = format!("{}-{name}", scene.namespace);
    let size = json!({"storage": "1Gi"});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": request}},
        "volumeName": volume, "storageClassName": "e2e-none"});
    scene
        .apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}))
        .await?;
    let claim: PersistentVolumeClaim = scene.fetch(name).await?;
    let claim_ref = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": scene.namespace,
        "name": name, "uid": claim.uid()});
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": size, "claimRef": claim_ref,
        "storageClassName": "e2e-none", "persistentVolumeReclaimPolicy": "Retain"});
    spec[plugin] = source;
    let object = serde_json::from_value(json!({"metadata": {"name": volume}, "spec": spec}))?;
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    volumes.create(&PostParams::default(), &object).await.context("create the volume")?;
    let status = json!({"status": {"phase": "Bound", "capacity": size, "accessModes": ["ReadWriteOnce"]}});
    scene.patch_status::<PersistentVolumeClaim>(name, &status).await.context("bind the claim")?;
    Ok(volume)
}

/// The VolumeAttachment of this volume, once there is one.
pub(crate) async fn attachment_of(
    scene: &Scene,
    attachments: &Api<VolumeAttachment>,
    volume: &str,
) -> Result<VolumeAttachment> {
    scene
        .wait_until("the volume is to be attached", DEADLINE, async || {
            let all = attachments.list(&ListParams::default()).await?;
            let is_of = |found: &VolumeAttachment| found.spec.source.persistent_volume_name.as_deref() == Some(volume);
            all.items.into_iter().find(is_of).context("there is no VolumeAttachment")
        })
        .await
}

/// Answers as the driver's attacher: with this failure, or that the volume is attached.
pub(crate) async fn answer(attachments: &Api<VolumeAttachment>, name: &str, error: &Value) -> Result<()> {
    let status = json!({"attached": error.is_null(), "attachError": error});
    let patch = Patch::Merge(json!({"status": status}));
    attachments.patch_status(name, &PatchParams::default(), &patch).await.map(drop).context("answer as the attacher")
}
