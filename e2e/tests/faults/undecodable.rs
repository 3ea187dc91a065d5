//! One object that this build cannot read keeps it from nothing else.

use anyhow::{Context, Result, ensure};
use e2e::operator::Installed;
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::scene::{REPLICA_SET, Scene, replica_set};

/// A line of a watch about an object whose labels are none.
fn event(object: Value) -> String {
    format!("{}\n", json!({ "type": "MODIFIED", "object": object }))
}

#[tokio::test]
async fn an_object_that_cannot_be_read_stops_nothing_and_is_told_of() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET]).await?;
    scene.apply(&replica_set(3)).await?;
    scene.wait_replica_set("web").await?;
    let pod = scene.pods().await?.into_iter().next().context("no pod")?;
    let name = pod.name_any();
    let behind = scene.behind(REPLICA_SET)?;
    let broken_pod = json!({ "kind": "Pod", "apiVersion": "v1", "metadata": {
        "name": name, "namespace": "default", "uid": pod.uid(),
        "resourceVersion": pod.resource_version(), "labels": "none",
    } });
    let broken_set = json!({ "kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {
        "name": "strange", "namespace": "default", "uid": "00000000-0000-0000-0000-000000000001",
        "resourceVersion": "1", "labels": "none",
    } });
    let reached = behind.proxy.inject_event("/api/v1/pods", event(broken_pod))
        + behind.proxy.inject_event("/apis/apps/v1/replicasets", event(broken_set));
    ensure!(reached == 2, "{reached} watches were told");

    scene.patch_spec::<ReplicaSet>("web", &json!({ "replicas": 5 })).await?;
    scene.wait_replica_set("web").await?;
    let there = scene.pods().await?.iter().any(|pod| pod.name_any() == name);
    ensure!(there, "the pod that could not be read was replaced");

    let metrics = metrics(&scene).await?;
    for resource in ["pods", "replicasets.apps"] {
        let line = format!("informer_decode_errors_total{{resource=\"{resource}\"}} 1");
        ensure!(metrics.lines().any(|it| it == line), "no line {line} in:\n{metrics}");
    }
    let log = behind.operator.log()?;
    for name in [name.as_str(), "strange"] {
        let told = log.lines().any(|line| line.contains("cannot read an object") && line.contains(name));
        ensure!(told, "no word about {name} in:\n{log}");
    }
    scene.stays_replica_set("web").await
}

async fn metrics(scene: &Scene) -> Result<String> {
    scene
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "metrics-reader" },
            "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
        }))
        .await?;
    scene
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": "metrics-reader" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics-reader" },
            "subjects": [{ "kind": "ServiceAccount", "name": "default", "namespace": "default" }],
        }))
        .await?;
    let reader = Installed { namespace: "default".to_owned(), service_account: "default".to_owned() };
    let token = scene.cluster.token(&reader).await?;
    let operator = &scene.behind(REPLICA_SET)?.operator;
    scene
        .wait("metrics are served", async || {
            let (status, text) = operator.get("/metrics", Some(&token)).await?;
            Ok(status.is_success().then_some(text))
        })
        .await
}
