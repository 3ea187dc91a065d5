//! A kind whose objects are migrated to another version, and one page of objects more than there are of it.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::support::migrations::{GROUP, api, definition, kind, migration, succeeded};
use crate::support::{DEADLINE, Scene};

/// More than a page has.
const OBJECTS: usize = 501;
const AT_ONCE: usize = 20;
const PLURAL: &str = "lifemigrations";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let config_maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), &scene.namespace);
    stream::iter(0..OBJECTS)
        .map(async |number| {
            let config_map = json!({"metadata": {"name": format!("migrated-{number}")}});
            config_maps
                .create(&PostParams::default(), &serde_json::from_value(config_map)?)
                .await
                .map_err(anyhow::Error::from)
        })
        .buffer_unordered(AT_ONCE)
        .try_for_each(async |_| Ok(()))
        .await
        .context("create what is migrated")?;
    apply(&scene.client, "", &definition(PLURAL, "v1")).await?;
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind(PLURAL), "metadata": {"name": "migrated"}});
    scene
        .wait_until("the custom kind is served", DEADLINE, async || {
            apply(&scene.client, &scene.namespace, &object).await.map(drop)
        })
        .await?;
    let names = ["e2e-life-core", "e2e-life-custom"];
    apply(&scene.client, "", &migration(names[0], "", "configmaps")).await?;
    apply(&scene.client, "", &migration(names[1], GROUP, PLURAL)).await?;
    let migrations = api(scene).await?;
    for name in names {
        succeeded(scene, &migrations, name).await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(scene.client.clone());
    let name = format!("{PLURAL}.{GROUP}");
    scene
        .wait_until("the definition shows the end of the migration", DEADLINE, async || {
            let status = definitions.get(&name).await?.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            let is_over = |type_: &str, is: &str| conditions.iter().any(|one| one.type_ == type_ && one.status == is);
            ensure!(is_over("StorageMigrating", "False"), "{conditions:?}");
            Ok(())
        })
        .await?;
    for name in names {
        migrations.delete(name, &DeleteParams::default()).await.map(drop).context("delete the migration")?;
    }
    definitions.delete(&name, &DeleteParams::default()).await.map(drop).context("delete the definition")
}
