//! A pod gets the claim of its ephemeral volume, and another one is told again and again that somebody else's claim has
//! the name of its own.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, template};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let taken = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "clash-data"},
        "spec": claim_spec()});
    scene.apply(&taken).await?;
    scene.apply(&user("web")).await?;
    scene.apply(&user("clash")).await?;
    scene
        .wait_until("the pod has its claim", DEADLINE, async || {
            let claim: PersistentVolumeClaim = scene.fetch("web-data").await?;
            ensure!(claim.owner_references().iter().any(|owner| owner.name == "web"), "{claim:?}");
            Ok(())
        })
        .await?;
    scene
        .wait_until("the clash is reported, and its event counted up", DEADLINE, async || {
            let events: Vec<Event> = scene.events("FailedBinding").await?;
            let about = |event: &&Event| event.involved_object.name.as_deref() == Some("clash");
            let most = events.iter().filter(about).filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    let unused: PersistentVolumeClaim = scene.fetch("clash-data").await?;
    ensure!(unused.owner_references().is_empty(), "it is another owner's: {unused:?}");
    Ok(())
}

fn claim_spec() -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "e2e-none"})
}

/// Its claim is never bound, so it does not start.
fn user(name: &str) -> Value {
    let mut spec = template(name)["spec"].clone();
    spec["volumes"] = json!([{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec()}}}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.apply(&user("ephemeral")).await?;
    Ok(format!("create persistentvolumeclaims {}/ephemeral-data: ", scene.namespace))
}
