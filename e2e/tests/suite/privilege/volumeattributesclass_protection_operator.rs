//! A class that is protected, again when somebody has taken that away, and goes after the last claim that names it.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{protected_again, unprotect};
use crate::support::Scene;
use crate::support::csi::VAC_PROTECTION;

const NAME: &str = "e2e-protected";

/// A claim goes only without its own finalizer.
pub(super) const NEEDS: &[&str] = &["persistentvolumeclaim-protection-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let classes: Api<VolumeAttributesClass> = Api::all(scene.client.clone());
    apply(&scene.client, "", &class(NAME)).await?;
    protected_again(scene, &classes, NAME, VAC_PROTECTION).await?;
    scene.apply(&claim()).await?;
    classes.delete(NAME, &DeleteParams::default()).await.map(drop).context("delete the class")?;
    let going = classes.get(NAME).await?;
    ensure!(going.metadata.deletion_timestamp.is_some(), "a claim names it: {going:?}");
    scene.kubectl("delete pvc/data").await?;
    scene.gone::<PersistentVolumeClaim>("data").await?;
    scene.gone_from(&classes, NAME).await
}

fn class(name: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": name},
        "driverName": "e2e.example", "parameters": {"iops": "100"}})
}

fn claim() -> Value {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "e2e-none", "volumeAttributesClassName": NAME});
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let classes: Api<VolumeAttributesClass> = Api::all(scene.client.clone());
    apply(&scene.client, "", &class("tampered")).await?;
    unprotect(&classes, "tampered").await?;
    Ok("patch volumeattributesclasses.storage.k8s.io tampered: metadata.finalizers".to_owned())
}
