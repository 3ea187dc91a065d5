//! Claims are bound to volumes, given the default class and handed to a provisioner; one is lost with its volume, and
//! volumes without their claims are released, emptied, fail to be recycled, or are deleted.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::csi::{phase, recycler_ends};
use crate::support::{DEADLINE, Scene};

const PROVISIONER: &str = "binder.e2e.example";
const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The volume that is recycled by a plugin.
const EMPTIED: &str = "emptied";

pub(super) const NEEDS: &[&str] =
    &["persistentvolume-protection-operator", "persistentvolumeclaim-protection-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    let classes: Api<StorageClass> = Api::all(scene.client.clone());
    let class = scene.namespace.clone();
    let object = serde_json::from_value(json!({"metadata": {"name": class}, "provisioner": PROVISIONER}))?;
    classes.create(&PostParams::default(), &object).await.context("create the class")?;
    claim(scene, "provisioned", &class, None).await?;
    scene
        .wait_until("the claim names its provisioner", DEADLINE, async || {
            let claim: PersistentVolumeClaim = scene.fetch("provisioned").await?;
            let named = claim.annotations().get(STORAGE_PROVISIONER);
            ensure!(named.is_some_and(|named| named == PROVISIONER), "{claim:?}");
            Ok(())
        })
        .await?;
    classes.delete(&class, &DeleteParams::default()).await.context("delete the class")?;

    let kept = bound(scene, "kept", "Retain").await?;
    let recycled = bound(scene, "recycled", "Recycle").await?;
    let emptied = bound(scene, EMPTIED, "Recycle").await?;
    let deleted = bound(scene, "deleted", "Delete").await?;
    // The pod that empties a volume runs as any pod of its namespace.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    apply(&scene.client, "default", &account).await?;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(scene.client.clone(), &scene.namespace);
    for name in ["kept", "recycled", EMPTIED, "deleted"] {
        claims.delete(name, &DeleteParams::default()).await.context("delete a claim")?;
    }
    phase(scene, &kept, "Released").await?;
    phase(scene, &recycled, "Failed").await?;
    scene.gone_from(&volumes, &deleted).await?;
    recycler_ends(scene, &emptied).await?;
    phase(scene, &emptied, "Available").await?;

    let lost = bound(scene, "lost", "Retain").await?;
    let finalizers = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    volumes.delete(&lost, &DeleteParams::default()).await.context("delete a volume in use")?;
    volumes.patch(&lost, &PatchParams::default(), &finalizers).await.context("let it go")?;
    scene
        .wait_until("the claim is lost", DEADLINE, async || {
            let claim: PersistentVolumeClaim = scene.fetch("lost").await?;
            let phase = claim.status.and_then(|status| status.phase);
            ensure!(phase.as_deref() == Some("Lost"), "{phase:?}");
            Ok(())
        })
        .await?;
    for volume in [kept, recycled, emptied] {
        volumes.delete(&volume, &DeleteParams::default()).await.context("delete a volume")?;
    }
    Ok(())
}

async fn claim(scene: &Scene, name: &str, class: &str, volume: Option<&str>) -> Result<()> {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": class, "volumeName": volume});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec});
    scene.apply(&claim).await.map(drop)
}

/// A volume of a class of its own, and the claim that gets it; gives the volume's name.
async fn bound(scene: &Scene, name: &str, policy: &str) -> Result<String> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    let volume = format!("{}-{name}", scene.namespace);
    create(&volumes, &volume, policy).await?;
    claim(scene, name, &volume, None).await?;
    phase(scene, &volume, "Bound").await?;
    scene
        .wait_until("the claim is bound", DEADLINE, async || {
            let claim: PersistentVolumeClaim = scene.fetch(name).await?;
            let phase = claim.status.and_then(|status| status.phase);
            ensure!(phase.as_deref() == Some("Bound"), "{phase:?}");
            Ok(())
        })
        .await?;
    Ok(volume)
}

async fn create(volumes: &Api<PersistentVolume>, volume: &str, policy: &str) -> Result<()> {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
        "storageClassName": volume, "persistentVolumeReclaimPolicy": policy});
    if policy == "Delete" || volume.ends_with(EMPTIED) {
        spec["hostPath"] = json!({"path": format!("/tmp/{volume}")});
    } else {
        spec["csi"] = json!({"driver": PROVISIONER, "volumeHandle": volume});
    }
    let object = serde_json::from_value(json!({"metadata": {"name": volume}, "spec": spec}))?;
    volumes.create(&PostParams::default(), &object).await.map(drop).context("create a volume")
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    let volume = format!("{}-tampered", scene.namespace);
    create(&volumes, &volume, "Retain").await?;
    Ok(format!("patch persistentvolumes/status {volume}: "))
}
