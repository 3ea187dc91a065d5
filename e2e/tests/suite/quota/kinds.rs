//! Hundreds of kinds, of which quotas name a few; and one that cannot be listed, which must stop nothing else.
//!
//! Upstream: k/k#133737 and k/k#135796, in which each of them stops all quotas.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::api;
use e2e::cluster::ClusterOptions;
use e2e::proxy::{Action, Exchange, Rule};
use futures::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{quota, status, uses};
use crate::support::behind::Behind;
use crate::support::{DEADLINE, Scene, with_cluster};

const OPERATOR: &str = "resourcequota-operator";
const KINDS: usize = 300;
const GROUP: &str = "e2e-many.example";
/// How soon after its start all usage is there.
const SOON: Duration = Duration::from_secs(2);
/// How many kinds are defined at a time.
const PARALLEL: usize = 20;

async fn define(scene: &Scene) -> Result<()> {
    let definitions = api(&scene.client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "").await?;
    let one = async |at: usize| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("kind{at}s.{GROUP}")},
            "spec": {
                "group": GROUP, "scope": "Namespaced",
                "names": {"plural": format!("kind{at}s"), "kind": format!("Kind{at}")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        });
        let definition = serde_json::from_value(definition).context("describe a kind")?;
        definitions.create(&PostParams::default(), &definition).await.map(drop).context("define a kind")
    };
    stream::iter(0..KINDS).map(one).buffer_unordered(PARALLEL).try_collect::<()>().await?;
    scene
        .wait_until("all kinds are established", DEADLINE, async || {
            let mut left = definitions.list(&ListParams::default()).await?.items;
            left.retain(|definition| {
                let conditions = definition.data.pointer("/status/conditions").and_then(Value::as_array);
                !conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True")
            });
            ensure!(left.is_empty(), "{} are not", left.len());
            Ok(())
        })
        .await?;
    for at in [0, 7, KINDS - 1] {
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": format!("Kind{at}"),
            "metadata": {"name": "one"}});
        scene.wait_until("it is served", DEADLINE, async || scene.apply(&object).await.map(drop)).await?;
    }
    Ok(())
}

/// What it watches: each path once for each watch that began there.
fn watched(behind: &Behind) -> Vec<String> {
    let is_watch = |request: &Exchange| request.query.contains("watch=1");
    let requests = behind.proxy.requests().into_iter().filter(is_watch);
    let mut paths: Vec<String> =
        requests.map(|request| request.path).filter(|path| !path.contains("/leases")).collect();
    paths.sort();
    paths
}

#[test]
fn three_hundred_kinds_cost_no_watch_and_one_that_cannot_be_listed_stops_nobody() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 1, ..ClusterOptions::default() }, async |scene| {
        define(scene).await?;
        let [good, broken] = [0, 7].map(|at| format!("count/kind{at}s.{GROUP}"));
        let other = scene.beside("other").await?;
        scene.apply(&quota("team", &json!({good.as_str(): "5", broken.as_str(): "5", "secrets": "5"}))).await?;
        other.apply(&quota("team", &json!({"configmaps": "5", "services": "5"}))).await?;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}});
        scene.apply(&secret).await?;

        // The first of them begins an informer for each quota's kinds, the second one finds all of them in its way.
        let mut behind = Behind::start(scene, OPERATOR, OPERATOR, &[]).await?;
        uses(scene, "team", &json!({good.as_str(): "1", broken.as_str(): "1", "secrets": "1"})).await?;
        starts_soon(scene, &other, &mut behind, &secret).await?;

        cannot_list_one(scene, &mut behind, &good, &broken).await
    })
}

/// Usage that has come while nobody worked is there soon after the start, and no watch is for a kind without a limit.
async fn starts_soon(scene: &Scene, other: &Scene, behind: &mut Behind, secret: &Value) -> Result<()> {
    behind.operator.terminate().await?;
    let mut second = secret.clone();
    second["metadata"]["name"] = json!("two");
    // What is charged goes while nobody is there to give it back.
    scene.apply(&second).await?;
    scene.kubectl("delete secret/one secret/two").await?;
    other.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})).await?;
    behind.proxy.forget_requests();
    let begun = Instant::now();
    behind.operator.restart()?;
    uses(scene, "team", &json!({"secrets": "0"})).await?;
    let took = begun.elapsed();
    eprintln!("with {KINDS} kinds defined the usage was right {took:?} after the start");
    ensure!(took < SOON, "the usage was right only after {took:?}");
    uses(other, "team", &json!({"configmaps": "1", "services": "0"})).await?;
    let [one, two] = [&scene.namespace, &other.namespace];
    let mut expected = vec![
        "/api/v1/resourcequotas".to_owned(),
        format!("/api/v1/namespaces/{one}/secrets"),
        format!("/api/v1/namespaces/{two}/configmaps"),
        format!("/api/v1/namespaces/{two}/services"),
    ];
    expected.extend([0, 7].map(|at| format!("/apis/{GROUP}/v1/namespaces/{one}/kind{at}s")));
    expected.sort();
    scene
        .wait_until("the watches of the named kinds", DEADLINE, async || {
            let found = watched(behind);
            ensure!(found == expected, "{found:#?}");
            Ok(())
        })
        .await
}

/// One kind answers with an error: its usage stays and somebody is told, the others are counted, also after a restart.
async fn cannot_list_one(scene: &Scene, behind: &mut Behind, good: &str, broken: &str) -> Result<()> {
    let path = "**/kind7s";
    behind.proxy.add(Rule::new(Action::reply(StatusCode::INTERNAL_SERVER_ERROR)).path(path).always());
    behind.proxy.cut_watches(path);
    scene.told("UsageNotCounted").await?;
    scene.kubectl(&format!("delete kind0s.{GROUP}/one kind7s.{GROUP}/one")).await?;
    uses(scene, "team", &json!({good: "0", broken: "1"})).await?;
    behind.operator.kill();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "three"}});
    scene.apply(&secret).await?;
    scene.kubectl("delete secret/three").await?;
    behind.operator.restart()?;
    uses(scene, "team", &json!({good: "0", broken: "1", "secrets": "0"})).await?;
    let told = scene.told("UsageNotCounted").await?;
    let messages: Vec<String> = told.into_iter().filter_map(|event| event.message).collect();
    let start = format!("Cannot count kind7s.{GROUP}; its usage stays unchanged: ");
    ensure!(messages.iter().all(|message| message.starts_with(&start)), "{messages:?}");
    let [used, hard] = status(scene, "team").await?;
    ensure!(used[broken] == "1" && hard[broken] == "5", "{used} of {hard}");
    behind.proxy.clear();
    uses(scene, "team", &json!({good: "0", broken: "0"})).await
}
