//! StorageVersionMigrations, and a definition of a kind whose storage version changes.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{DEADLINE, Scene};

/// The operator that runs them.
pub(crate) const OPERATOR: &str = "storage-version-migrator-operator";
const API_VERSION: &str = "storagemigration.k8s.io/v1beta1";
const KIND: &str = "StorageVersionMigration";
/// The group of the defined kinds.
pub(crate) const GROUP: &str = "e2e.example";

pub(crate) async fn api(scene: &Scene) -> Result<Api<DynamicObject>> {
    e2e::apply::api(&scene.client, API_VERSION, KIND, "").await
}

pub(crate) fn migration(name: &str, group: &str, resource: &str) -> Value {
    let spec = json!({"resource": {"group": group, "resource": resource}});
    json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec})
}

/// A kind with the versions `v1` and `v2`, which do not differ, and whose objects are stored in `storage`.
pub(crate) fn definition(plural: &str, storage: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == storage, "schema": schema});
    let names = json!({"plural": plural, "kind": kind(plural)});
    let spec =
        json!({"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version("v1"), version("v2")]});
    let name = format!("{plural}.{GROUP}");
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn kind(plural: &str) -> String {
    let (first, rest) = plural.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// Waits until a migration has succeeded and does not run any more.
pub(crate) async fn succeeded(scene: &Scene, migrations: &Api<DynamicObject>, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} has succeeded"), 4 * DEADLINE, async || {
            let status = migrations.get(name).await?.data["status"].clone();
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let has = |type_: &str, is: &str| conditions.iter().any(|one| one["type"] == type_ && one["status"] == is);
            ensure!(has("Succeeded", "True") && has("Running", "False"), "{status}");
            Ok(())
        })
        .await
}
