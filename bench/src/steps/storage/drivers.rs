//! What a vendor's programs do beside the controllers: make and delete volumes, and attach them.

use std::convert::Infallible;
use std::fmt::Debug;
use std::pin::pin;

use anyhow::{Context, Result, anyhow};
use futures::TryStreamExt;
use futures::future::{Either, select, try_join3};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::measure::{NAMESPACE, PARALLEL};

pub(super) const DRIVER: &str = "bench.example";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";

/// Does `work` while the programs are at theirs.
pub(super) async fn driven(client: &Client, work: impl Future<Output = Result<()>>) -> Result<()> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), NAMESPACE);
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let attachments: Api<VolumeAttachment> = Api::all(client.clone());
    let programs = try_join3(
        follow(&claims, async |claim| provision(&volumes, claim).await),
        follow(&volumes, async |volume| delete(&volumes, volume).await),
        follow(&attachments, async |attachment| attach(&attachments, attachment).await),
    );
    match select(pin!(work), pin!(programs)).await {
        Either::Left((done, _)) => done,
        Either::Right((ended, _)) => ended.map(drop),
    }
}

/// Acts on each object that exists, and on each again that changes.
async fn follow<K>(objects: &Api<K>, act: impl AsyncFn(K) -> Result<()>) -> Result<Infallible>
where
    K: Clone + Debug + DeserializeOwned,
{
    loop {
        let events = objects.watch(&WatchParams::default(), "0").await?.map_err(anyhow::Error::from);
        let changed = events.try_filter_map(async |event| match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Ok(Some(object)),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => Ok(None),
            WatchEvent::Error(status) => Err(anyhow!("{status:?}")),
        });
        changed.try_for_each_concurrent(PARALLEL, |object| act(object)).await?;
    }
}

async fn provision(volumes: &Api<PersistentVolume>, claim: PersistentVolumeClaim) -> Result<()> {
    let spec = claim.spec.clone().unwrap_or_default();
    let is_asked = claim.annotations().get(PROVISIONER).is_some_and(|name| name == DRIVER);
    if !is_asked || spec.volume_name.is_some() || claim.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let uid = claim.uid().unwrap_or_default();
    let name = format!("pvc-{uid}");
    let volume = json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
        "spec": {
            "accessModes": spec.access_modes, "capacity": spec.resources.and_then(|resources| resources.requests),
            "storageClassName": spec.storage_class_name, "persistentVolumeReclaimPolicy": "Delete",
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": NAMESPACE,
                "name": claim.name_any(), "uid": uid,
            },
        },
    });
    let volume: PersistentVolume = serde_json::from_value(volume).context("describe a volume")?;
    match volumes.create(&PostParams::default(), &volume).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

async fn delete(volumes: &Api<PersistentVolume>, volume: PersistentVolume) -> Result<()> {
    let is_released = volume.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Released"));
    if !is_released || volume.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    unless_gone(volumes.delete(&volume.name_any(), &DeleteParams::default()).await.map(drop))
}

async fn attach(attachments: &Api<VolumeAttachment>, attachment: VolumeAttachment) -> Result<()> {
    if attachment.status.as_ref().is_some_and(|status| status.attached) {
        return Ok(());
    }
    let (name, patch) = (attachment.name_any(), json!({"status": {"attached": true}}));
    unless_gone(attachments.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop))
}

fn unless_gone(done: kube::Result<()>) -> Result<()> {
    match done {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        done => Ok(done?),
    }
}
