//! Objects of a custom kind are stored again after its storage version has changed: upstream's integration tests
//! `TestStorageVersionMigrationWithCRD` and `TestStorageVersionMigrationDuringChaos`.
//!
//! Left out: conversion webhooks, and Secrets whose encryption changes, which takes another start of the apiserver.

mod minutes;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::cluster::ClusterOptions;
use futures::{StreamExt, TryStreamExt, future, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::migrations::{GROUP, OPERATOR, api, definition, kind, migration, succeeded};
use crate::support::{DEADLINE, Scene, start_operators, with_cluster};

const PLURAL: &str = "widgets";
/// How many are stored in the first version: several pages of a list.
const OLD: usize = 2000;
/// Of so many one is edited and one is deleted.
const EDITED: usize = 100;
/// How many are stored in the second version before the migration.
const NEW: usize = 100;
const AT_ONCE: usize = 20;

/// An apiserver tells of a kind a moment after it is established.
async fn objects(scene: &Scene, version: &str) -> Result<Api<DynamicObject>> {
    let (group, kind) = (format!("{GROUP}/{version}"), kind(PLURAL));
    let find = async || e2e::apply::api(&scene.client, &group, &kind, &scene.namespace).await;
    scene.wait_until("the kind is served", DEADLINE, find).await
}

async fn create(objects: &Api<DynamicObject>, version: &str, prefix: &str, count: usize) -> Result<()> {
    stream::iter(0..count)
        .map(async |number| {
            let metadata = json!({"name": format!("{prefix}-{number}")});
            let object =
                json!({"apiVersion": format!("{GROUP}/{version}"), "kind": kind(PLURAL), "metadata": metadata, "spec": {}});
            let object: DynamicObject = serde_json::from_value(object)?;
            objects.create(&PostParams::default(), &object).await.context("create an object").map(drop)
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// The resourceVersion and generation of each object. An apiserver lists nothing while it sets up the storage of a
/// definition that has changed.
async fn versions(scene: &Scene, objects: &Api<DynamicObject>) -> Result<BTreeMap<String, (String, i64)>> {
    let list = async || Ok(objects.list_metadata(&ListParams::default()).await?.items);
    let all = scene.wait_until("the objects are listed", DEADLINE, list).await?;
    let version = |object: &kube::core::PartialObjectMeta<DynamicObject>| {
        let metadata = &object.metadata;
        (metadata.resource_version.clone().unwrap_or_default(), metadata.generation.unwrap_or_default())
    };
    Ok(all.iter().map(|object| (object.name_any(), version(object))).collect())
}

async fn store_in(scene: &Scene, version: &str) -> Result<()> {
    apply(&scene.client, "", &definition(PLURAL, version)).await?;
    scene
        .wait_until("the kind is established", DEADLINE, async || {
            let definitions: Api<CustomResourceDefinition> = Api::all(scene.client.clone());
            let status = definitions.get(&format!("{PLURAL}.{GROUP}")).await?.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            let is_there = conditions.iter().any(|one| one.type_ == "Established" && one.status == "True");
            ensure!(
                is_there && status.stored_versions.unwrap_or_default().contains(&version.to_owned()),
                "{conditions:?}"
            );
            Ok(())
        })
        .await
}

/// An apiserver may store in the previous version for a moment after the definition has changed: objects are created
/// until a write without a change leaves one as it is.
async fn wait_until_stored_in_v2(scene: &Scene, objects: &Api<DynamicObject>) -> Result<()> {
    scene
        .wait_until("new objects are stored in v2", DEADLINE, async || {
            let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind(PLURAL), "metadata": {"generateName": "probe-"}});
            let created = objects.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            let touched = objects.patch(&created.name_any(), &PatchParams::default(), &Patch::Merge(json!({}))).await?;
            objects.delete(&created.name_any(), &DeleteParams::default()).await?;
            ensure!(touched.resource_version() == created.resource_version(), "it was stored in another version");
            Ok(())
        })
        .await
}

/// Migrates so many objects, of which some are edited and deleted meanwhile, and drops the previous version.
fn migrates(old: usize) -> Result<()> {
    with_cluster(ClusterOptions::default().with_gated_kinds(), async |scene| {
        store_in(scene, "v1").await?;
        let objects = objects(scene, "v1").await?;
        create(&objects, "v1", "old", old).await?;
        store_in(scene, "v2").await?;
        wait_until_stored_in_v2(scene, &objects).await?;
        create(&objects, "v1", "new", NEW).await?;
        let before = versions(scene, &objects).await?;
        let _operator = start_operators(&scene.cluster, [OPERATOR]).await?;
        let migrations = api(scene).await?;
        apply(&scene.client, "", &migration("widgets", GROUP, PLURAL)).await?;
        let edits = async {
            let edit = Patch::Merge(json!({"spec": {"edited": true}}));
            for number in (0..old).step_by(EDITED) {
                objects.patch(&format!("old-{number}"), &PatchParams::default(), &edit).await?;
                objects.delete(&format!("old-{}", number + 1), &DeleteParams::default()).await?;
            }
            Ok(())
        };
        future::try_join(edits, succeeded(scene, &migrations, "widgets")).await?;

        let after = versions(scene, &objects).await?;
        ensure!(after.len() == before.len() - old / EDITED, "{} of {} are left", after.len(), before.len());
        for (name, (version, generation)) in &after {
            let (old_version, old_generation) = &before[name];
            ensure!((version == old_version) == name.starts_with("new"), "{name}: {old_version} -> {version}");
            let number: usize = name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default();
            let is_edited = name.starts_with("old") && number.is_multiple_of(EDITED);
            ensure!(*generation == old_generation + i64::from(is_edited), "{name}: {old_generation} -> {generation}");
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(scene.client.clone());
        let name = format!("{PLURAL}.{GROUP}");
        let stored = definitions.get(&name).await?.status.unwrap_or_default().stored_versions;
        ensure!(stored == Some(vec!["v2".to_owned()]), "{stored:?}");
        let mut only = definition(PLURAL, "v2");
        only["spec"]["versions"].as_array_mut().context("versions")?.remove(0);
        apply(&scene.client, "", &only).await.map(drop).context("drop the previous version")
    })
}

#[test]
fn the_previous_version_can_be_dropped_after_a_migration() -> Result<()> {
    migrates(OLD)
}

#[test]
fn parallel_migrations_of_a_kind_succeed_while_objects_come_and_go() -> Result<()> {
    with_cluster(ClusterOptions::default().with_gated_kinds(), async |scene| {
        store_in(scene, "v2").await?;
        let objects = objects(scene, "v1").await?;
        create(&objects, "v1", "static", 50).await?;
        let before = versions(scene, &objects).await?;
        let _operator = start_operators(&scene.cluster, [OPERATOR]).await?;
        let migrations = api(scene).await?;
        let names: Vec<String> = (0..10).map(|number| format!("chaos-{number}")).collect();
        let migrate = async {
            for name in &names {
                apply(&scene.client, "", &migration(name, GROUP, PLURAL)).await?;
            }
            for name in &names {
                succeeded(scene, &migrations, name).await?;
            }
            Ok(())
        };
        let chaos = async {
            for round in 0_usize.. {
                let prefix = format!("chaos-{round}");
                create(&objects, "v1", &prefix, 20).await?;
                for number in 0..20 {
                    objects.delete(&format!("{prefix}-{number}"), &DeleteParams::default()).await?;
                }
            }
            Ok(())
        };
        let migrated: Result<()> = match future::select(Box::pin(migrate), Box::pin(chaos)).await {
            future::Either::Left((done, _)) | future::Either::Right((done, _)) => done,
        };
        migrated?;
        let after = versions(scene, &objects).await?;
        let is_kept = before.iter().all(|(name, version)| after.get(name) == Some(version));
        ensure!(is_kept, "an object was changed: {before:?} -> {after:?}");
        Ok(())
    })
}
