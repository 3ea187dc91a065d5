//! One object that this build cannot read keeps it from nothing else.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{PODS, REPLICA_SET, REPLICA_SETS, complete_set, pods, replica_set, stays_set, with_operators};
use crate::support::clusters::metrics_token;
use crate::support::{DEADLINE, uid};

/// A line of a watch about an object whose labels are none.
fn event(object: &Value) -> String {
    json!({"type": "MODIFIED", "object": object}).to_string()
}

#[test]
fn an_object_that_cannot_be_read_stops_nothing_and_is_told_of() -> Result<()> {
    with_operators([REPLICA_SET], async |scene, [behind]| {
        scene.apply(&replica_set(3)).await?;
        complete_set(scene).await?;
        let pod = scene.list::<Pod>("app=web").await?.into_iter().next().context("no pod")?;
        let broken_pod = event(&json!({"kind": "Pod", "apiVersion": "v1", "metadata": {
            "name": pod.name_any(), "namespace": scene.namespace, "uid": pod.uid(),
            "resourceVersion": pod.resource_version(), "labels": "none",
        }}));
        let broken_set = event(&json!({"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {
            "name": "strange", "namespace": scene.namespace, "uid": "00000000-0000-0000-0000-000000000001",
            "resourceVersion": "1", "labels": "none",
        }}));
        let told = behind.proxy.inject_event(PODS, broken_pod) + behind.proxy.inject_event(REPLICA_SETS, broken_set);
        ensure!(told == 2, "{told} watches were told");

        scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 5}})).await?;
        complete_set(scene).await?;
        ensure!(pods(scene).await?.contains(&uid(&pod)), "the pod that could not be read was replaced");

        let token = metrics_token(scene).await?;
        let (_, metrics) = behind.operator.get("/metrics", Some(&token)).await?;
        for resource in ["pods", "replicasets.apps"] {
            let line = format!("informer_decode_errors_total{{resource=\"{resource}\"}} 1");
            ensure!(metrics.lines().any(|it| it == line), "no line {line} in:\n{metrics}");
        }
        scene
            .wait_until("the log names both", DEADLINE, async || {
                let log = behind.operator.log()?;
                for name in [&pod.name_any(), "strange"] {
                    let told = log.lines().any(|line| line.contains("cannot read an object") && line.contains(name));
                    ensure!(told, "no word about {name} in:\n{log}");
                }
                Ok(())
            })
            .await?;
        stays_set(scene).await
    })
}
