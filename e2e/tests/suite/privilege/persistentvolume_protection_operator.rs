//! A volume that is protected, again when somebody has taken that away, and goes.

use anyhow::{Context, Result};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{protected_again, unprotect};
use crate::support::Scene;

const FINALIZER: &str = "kubernetes.io/pv-protection";
const NAME: &str = "e2e-protected";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    apply(&scene.client, "", &volume(NAME)).await?;
    protected_again(scene, &volumes, NAME, FINALIZER).await?;
    volumes.delete(NAME, &DeleteParams::default()).await.map(drop).context("delete the volume")?;
    scene.gone_from(&volumes, NAME).await
}

fn volume(name: &str) -> Value {
    // No claim of another life has this class, so none takes the volume.
    let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/e2e"},
        "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "e2e-protected"});
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    apply(&scene.client, "", &volume("tampered")).await?;
    unprotect(&volumes, "tampered").await?;
    Ok("patch persistentvolumes tampered: metadata.finalizers".to_owned())
}
