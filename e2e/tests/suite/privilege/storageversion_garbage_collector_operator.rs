//! A StorageVersion with the entries of the apiserver and of one that never was, and a StorageVersion of only the latter.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

const API_VERSION: &str = "internal.apiserver.k8s.io/v1alpha1";
const KIND: &str = "StorageVersion";
/// The ID of an apiserver that never was.
const DEAD: &str = "e2e-dead";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let objects = storage_versions(scene).await?;
    let apiserver = apiserver(scene).await?;
    add(scene, &objects, "e2e.gone", &[DEAD]).await?;
    scene.gone_from(&objects, "e2e.gone").await?;
    add(scene, &objects, "e2e.shared", &[&apiserver, DEAD]).await?;
    scene
        .wait_until("the entry of the dead apiserver is removed", DEADLINE, async || {
            let shared = objects.get("e2e.shared").await?;
            let left = &shared.data["status"]["storageVersions"];
            ensure!(*left == json!([entry(&apiserver)]), "{left}");
            Ok(())
        })
        .await?;
    objects.delete("e2e.shared", &DeleteParams::default()).await.map(drop).context("delete the StorageVersion")
}

async fn storage_versions(scene: &Scene) -> Result<Api<DynamicObject>> {
    e2e::apply::api(&scene.client, API_VERSION, KIND, "").await
}

/// The ID of the apiserver, which is the name of its Lease.
async fn apiserver(scene: &Scene) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    let of_apiservers = ListParams::default().labels("apiserver.kubernetes.io/identity=kube-apiserver");
    let found = leases.list(&of_apiservers).await?.items;
    found.first().map(ResourceExt::name_any).context("the apiserver has no Lease")
}

fn entry(apiserver: &str) -> Value {
    json!({"apiServerID": apiserver, "encodingVersion": "v1", "decodableVersions": ["v1"]})
}

async fn add(scene: &Scene, objects: &Api<DynamicObject>, name: &str, apiservers: &[&str]) -> Result<()> {
    let object = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": {}});
    e2e::apply::apply(&scene.client, "", &object).await?;
    let entries: Vec<Value> = apiservers.iter().map(|apiserver| entry(apiserver)).collect();
    let conditions = json!([{"type": "AllEncodingVersionsEqual", "status": "True", "reason": "CommonEncodingVersionSet",
        "message": "Common encoding version set", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let status = json!({"storageVersions": entries, "commonEncodingVersion": "v1", "conditions": conditions});
    let patch = Patch::Merge(json!({"status": status}));
    objects.patch_status(name, &PatchParams::default(), &patch).await.map(drop).context("report the entries")
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    add(scene, &storage_versions(scene).await?, "e2e.tampered", &[DEAD]).await?;
    Ok("delete storageversions.internal.apiserver.k8s.io e2e.tampered: ".to_owned())
}
