//! Kinds that come, go, and come again; and one that cannot be listed, which must stop nothing else.
//!
//! Each test has a cluster of its own, as what is served is the same for everybody in a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::api;
use e2e::cluster::ClusterOptions;
use e2e::operator::Operator;
use futures::future::try_join_all;
use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::tree::{Kind, Tree, config_maps, define, define_all, definition, definition_name, reference, secrets};
use crate::support::clusters::monitoring_token;
use crate::support::{DEADLINE, Scene, start_operators, with_cluster};

const COUNT: usize = 50;
/// Less than how long a broken kind is waited for.
const LATE: Duration = Duration::from_secs(20);

/// A garbage collector and who may read what it says.
struct Collector {
    operator: Operator,
    token: String,
}

/// Runs a test on a cluster of its own, where objects and namespaces can go.
fn with_collector(test: impl AsyncFnOnce(&Scene, &Collector) -> Result<()>) -> Result<()> {
    with_cluster(ClusterOptions { nodes: 1, ..ClusterOptions::default() }, async |scene| {
        let mut operators =
            start_operators(&scene.cluster, ["namespace-operator", "garbage-collector-operator"]).await?;
        let operator = operators.pop().context("no operator")?;
        test(scene, &Collector { operator, token: monitoring_token(scene).await? }).await
    })
}

impl Collector {
    /// The values of a metric for each resource.
    async fn by_resource(&self, metric: &str) -> Result<BTreeMap<String, f64>> {
        let (status, text) = self.operator.get("/metrics", Some(&self.token)).await?;
        ensure!(status == StatusCode::OK, "/metrics says {status}");
        let start = format!("{metric}{{resource=\"");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&start)?.split_once("\"} "));
        lines.map(|(resource, value)| Ok((resource.to_owned(), value.parse()?))).collect()
    }

    /// Which kinds it cannot follow, and why.
    async fn feeds(&self) -> Result<String> {
        let (status, text) = self.operator.get("/readyz/feeds", Some(&self.token)).await?;
        ensure!(status == StatusCode::OK, "/readyz/feeds says {status} {text}");
        Ok(text)
    }

    /// Waits until it has listed objects of these kinds, or has not, or does not try.
    async fn wait_synced(&self, scene: &Scene, kinds: &[String], expected: Option<f64>) -> Result<()> {
        scene
            .wait_until(&format!("informer_synced is {expected:?}"), DEADLINE, async || {
                let synced = self.by_resource("informer_synced").await?;
                let wrong: Vec<&String> = kinds.iter().filter(|kind| synced.get(*kind).copied() != expected).collect();
                ensure!(wrong.is_empty(), "not of {wrong:?}");
                Ok(())
            })
            .await
    }
}

async fn delete_definition(scene: &Scene, kind: &str) -> Result<()> {
    let definitions = api(&scene.client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "").await?;
    let name = definition_name(scene, kind);
    definitions.delete(&name, &DeleteParams::background()).await.map(drop).with_context(|| format!("delete {name}"))
}

async fn gone(scene: &Scene, kind: &Kind, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{} {name} is gone", kind.kind), DEADLINE, async || {
            let left = kind.find(scene, name).await?;
            ensure!(left.is_none(), "{:?}", left.map(|left| left.metadata));
            Ok(())
        })
        .await
}

/// Upstream: `TestCRDDeletionCascading` and `TestCustomResourceCascadingDeletion`, test/integration/garbagecollector.
#[test]
fn fifty_kinds_come_and_go_and_one_comes_again() -> Result<()> {
    with_collector(async |scene, collector| {
        let names: Vec<String> = (0..COUNT).map(|index| format!("Kind{index}")).collect();
        let kinds = define_all(scene, &names).await?;
        let resources: Vec<String> = names.iter().map(|name| definition_name(scene, name)).collect();
        collector.wait_synced(scene, &resources, Some(1.0)).await?;

        let root = scene.apply(&config_maps().object("root", &[])).await?;
        try_join_all(kinds.iter().map(async |kind| scene.apply(&kind.object("owned", &[reference(&root)])).await))
            .await?;
        let owner = scene.apply(&kinds[0].object("owner", &[])).await?;
        scene.apply(&config_maps().object("of-the-first", &[reference(&owner)])).await?;
        scene.kubectl("delete configmap/root").await?;
        for kind in &kinds {
            gone(scene, kind, "owned").await?;
        }

        try_join_all(names.iter().map(|name| delete_definition(scene, name))).await?;
        collector.wait_synced(scene, &resources, None).await?;
        gone(scene, &config_maps(), "of-the-first").await?;

        let kind = define(scene, &names[0]).await?;
        let owner = scene.apply(&kind.object("owner", &[])).await?;
        scene.apply(&config_maps().object("of-the-second", &[reference(&owner)])).await?;
        collector.wait_synced(scene, &resources[..1], Some(1.0)).await?;
        let kept: ConfigMap = scene.fetch("of-the-second").await?;
        assert_eq!(kept.metadata.deletion_timestamp, None);
        let kind_name = format!("{}.v1.{}.example", kind.kind, scene.namespace);
        scene.kubectl(&format!("delete {kind_name}/owner")).await?;
        gone(scene, &config_maps(), "of-the-second").await
    })
}

/// Upstream: `TestCascadingDeleteOnCRDConversionFailure`, test/integration/garbagecollector.
#[test]
fn a_kind_whose_conversion_is_broken_stops_no_other_and_heals() -> Result<()> {
    with_collector(async |scene, collector| {
        let broken = define(scene, "Broken").await?;
        let resource = [definition_name(scene, "Broken")];
        let object = scene.apply(&broken.object("object", &[])).await?;
        collector.wait_synced(scene, &resource, Some(1.0)).await?;
        set_conversion(scene, &dead_webhook()).await?;
        collector.wait_synced(scene, &resource, Some(0.0)).await?;

        // It has an owner that nobody can read, and one that never was.
        let mut unreadable = reference(&object);
        unreadable["apiVersion"] = json!(format!("{}.example/v2", scene.namespace));
        let never = json!({"apiVersion": "v1", "kind": "Secret", "name": "never",
            "uid": "00000000-0000-4000-8000-000000000000"});
        scene.apply(&config_maps().object("waits", &[unreadable, never])).await?;
        elsewhere(scene, collector).await?;
        is_told(scene, collector, &resource[0]).await?;
        assert_eq!(owners(scene, "waits").await?, ["object", "never"]);

        set_conversion(scene, &json!({"strategy": "None", "webhook": null})).await?;
        collector.wait_synced(scene, &resource, Some(1.0)).await?;
        scene
            .wait_until("the owner that never was is dropped", DEADLINE, async || {
                let owners = owners(scene, "waits").await?;
                ensure!(owners == ["object"], "{owners:?}");
                Ok(())
            })
            .await?;
        assert_eq!(collector.feeds().await?, "ok");
        scene.kubectl(&format!("delete brokens.v2.{}.example/object", scene.namespace)).await?;
        gone(scene, &config_maps(), "waits").await
    })
}

/// A second version, which from now on is the preferred one, and how to convert to it.
async fn set_conversion(scene: &Scene, conversion: &Value) -> Result<()> {
    let mut changed = definition(scene, "Broken");
    let mut second = changed["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    changed["spec"]["versions"] = json!([changed["spec"]["versions"][0], second]);
    changed["spec"]["conversion"] = conversion.clone();
    let definitions = api(&scene.client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "").await?;
    let name = definition_name(scene, "Broken");
    let patched: DynamicObject = definitions.patch(&name, &PatchParams::default(), &Patch::Merge(&changed)).await?;
    assert_eq!(patched.name_any(), name);
    Ok(())
}

/// Nobody listens there.
fn dead_webhook() -> Value {
    json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}},
    })
}

/// A namespace and a tree that have nothing to do with the broken kind go meanwhile, and another kind comes.
async fn elsewhere(scene: &Scene, collector: &Collector) -> Result<()> {
    let (other, doomed) = (scene.beside("other").await?, scene.beside("doomed").await?);
    let tree = Tree::grow(&other, "tree", [secrets(), config_maps(), secrets()]).await?;
    tree.let_go(&other).await?;
    tree.delete(&other, "foreground").await?;
    tree.wait_left(&other, &[]).await?;
    doomed.apply(&config_maps().object("anything", &[])).await?;
    doomed.delete_namespace().await?;
    let begin = Instant::now();
    define(&other, "Late").await?;
    collector.wait_synced(&other, &[definition_name(&other, "Late")], Some(1.0)).await?;
    ensure!(begin.elapsed() < LATE, "a new kind had to wait for {:?}", begin.elapsed());
    doomed.namespace_gone().await
}

/// In `/readyz`, which does not fail, and in the log: once, however often it has been tried.
async fn is_told(scene: &Scene, collector: &Collector, resource: &str) -> Result<()> {
    let operator = &collector.operator;
    scene
        .wait_until("it has tried again and again", DEADLINE, async || {
            let tries = collector.by_resource("informer_relists_total").await?;
            ensure!(tries.get(resource).is_some_and(|tries| *tries >= 2.0), "{:?}", tries.get(resource));
            Ok(())
        })
        .await?;
    let (status, ready) = operator.get("/readyz?verbose", None).await?;
    assert!(status == StatusCode::OK && ready.contains("[+]feeds degraded"), "{status} {ready}");
    let feeds = collector.feeds().await?;
    assert!(feeds.starts_with(&format!("degraded: {resource}: ")) && feeds.contains("conversion webhook"), "{feeds}");
    let log = operator.log()?;
    let told = log.lines().filter(|line| line.contains("cannot list or watch") && line.contains(resource)).count();
    assert_eq!(told, 1, "{log}");
    Ok(())
}

async fn owners(scene: &Scene, name: &str) -> Result<Vec<String>> {
    let object: ConfigMap = scene.fetch(name).await?;
    Ok(object.owner_references().iter().map(|owner| owner.name.clone()).collect())
}
