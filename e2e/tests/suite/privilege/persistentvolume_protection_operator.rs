//! A volume that is protected, again when somebody has taken that away, and goes.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

const FINALIZER: &str = "kubernetes.io/pv-protection";
const NAME: &str = "e2e-protected";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    apply(&scene.client, "", &volume(NAME)).await?;
    is_protected(scene, &volumes).await?;
    unprotect(&volumes, NAME).await?;
    is_protected(scene, &volumes).await?;
    volumes.delete(NAME, &DeleteParams::default()).await.map(drop).context("delete the volume")?;
    scene
        .wait_until("the volume has gone", DEADLINE, async || {
            let left = volumes.get_opt(NAME).await?;
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })
        .await
}

fn volume(name: &str) -> Value {
    let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/e2e"},
        "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "e2e-none"});
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
}

async fn unprotect(volumes: &Api<PersistentVolume>, name: &str) -> Result<()> {
    let unprotected = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    volumes.patch(name, &PatchParams::default(), &unprotected).await.map(drop).context("take the finalizer")
}

async fn is_protected(scene: &Scene, volumes: &Api<PersistentVolume>) -> Result<()> {
    scene
        .wait_until("the volume is protected", DEADLINE, async || {
            let volume = volumes.get(NAME).await?;
            ensure!(volume.finalizers().iter().any(|finalizer| finalizer == FINALIZER), "{volume:?}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    apply(&scene.client, "", &volume("tampered")).await?;
    unprotect(&volumes, "tampered").await?;
    Ok("patch persistentvolumes tampered: metadata.finalizers".to_owned())
}
