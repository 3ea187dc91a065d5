//! A claim of an in-tree plugin's volume that is to grow names the driver that replaces the plugin, and is told again when
//! it has grown in part.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::attachments::bound_to;
use crate::support::{DEADLINE, Scene};

const DRIVER: &str = "ebs.csi.aws.com";
const RESIZER: &str = "volume.kubernetes.io/storage-resizer";

pub(super) const NEEDS: &[&str] = &["persistentvolume-protection-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let volume = growing(scene, "growing").await?;
    scene
        .wait_until("the claim names its resizer", DEADLINE, async || {
            let claim: PersistentVolumeClaim = scene.fetch("growing").await?;
            ensure!(claim.annotations().get(RESIZER).is_some_and(|resizer| resizer == DRIVER), "{claim:?}");
            Ok(())
        })
        .await?;
    provide(scene, "growing", "1536Mi").await?;
    scene
        .wait_until("the event is counted up", DEADLINE, async || {
            let events: Vec<Event> = scene.events("ExternalExpanding").await?;
            let most = events.iter().filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    volumes.delete(&volume, &DeleteParams::default()).await.map(drop).context("delete the volume")
}

/// A claim of 2Gi and its volume of 1Gi of an in-tree plugin.
async fn growing(scene: &Scene, name: &str) -> Result<String> {
    bound_to(scene, name, "2Gi", ("awsElasticBlockStore", json!({"volumeID": "vol-1"}))).await
}

async fn provide(scene: &Scene, name: &str, size: &str) -> Result<()> {
    let status = json!({"status": {"phase": "Bound", "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"]}});
    scene.patch_status::<PersistentVolumeClaim>(name, &status).await.map(drop).context("provide the claim")
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    growing(scene, "resized").await?;
    Ok(format!("patch persistentvolumeclaims/status {}/resized: metadata.annotations", scene.namespace))
}
