//! Endpoints that come, change and go, and an event that is counted up.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Endpoints, Event, ResourceQuota};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, template};

pub(super) const NEEDS: &[&str] = &[];

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": "addressed"}, "ports": [{"port": 80}]},
    })
}

pub(super) async fn live(scene: &Scene) -> Result<()> {
    scene.apply(&service("addressed")).await?;
    let addresses = async |number: usize| {
        scene
            .wait_until(&format!("{number} addresses"), DEADLINE, async || {
                let endpoints: Endpoints = scene.fetch("addressed").await?;
                let subsets = endpoints.subsets.iter().flatten();
                let found: usize = subsets.map(|subset| subset.addresses.as_ref().map_or(0, Vec::len)).sum();
                ensure!(found == number, "{endpoints:?}");
                Ok(())
            })
            .await
    };
    addresses(0).await?;
    let mut pod = template("addressed");
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "addressed".into();
    scene.apply(&pod).await?;
    addresses(1).await?;
    be_refused(scene).await?;
    // The apiserver deletes the Endpoints of a deleted Service too; these stay until both have done so.
    let held = json!({"metadata": {"finalizers": ["e2e.example/hold"]}});
    scene.patch::<Endpoints>("addressed", &held).await?;
    scene.kubectl("delete service/addressed").await?;
    scene
        .wait_until("the Endpoints are being deleted", DEADLINE, async || {
            let endpoints: Endpoints = scene.fetch("addressed").await?;
            ensure!(endpoints.metadata.deletion_timestamp.is_some(), "{endpoints:?}");
            Ok(())
        })
        .await?;
    scene.patch::<Endpoints>("addressed", &json!({"metadata": {"finalizers": null}})).await?;
    scene.gone::<Endpoints>("addressed").await
}

/// There may be no more Endpoints. kube-controller-manager tells of those that it cannot create in another namespace.
async fn be_refused(scene: &Scene) -> Result<()> {
    let hard = json!({"count/endpoints": "1"});
    let metadata = json!({"name": "one"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}});
    scene.apply(&quota).await?;
    // In place of the controller that puts limits in force.
    let status = json!({"status": {"hard": hard, "used": hard}});
    scene.patch_status::<ResourceQuota>("one", &status).await?;
    let name = format!("refused-{}", scene.namespace);
    scene.apply(&service(&name)).await?;
    scene
        .wait_until("an event is counted up", DEADLINE, async || {
            let refusals = ListParams::default().fields("reason=FailedToCreateEndpoint");
            let events = Api::<Event>::all(scene.client.clone()).list(&refusals).await?;
            let about = |event: &&Event| event.involved_object.name.as_ref() == Some(&name);
            let most = events.items.iter().filter(about).filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    scene.kubectl(&format!("delete service/{name} resourcequota/one")).await.map(drop)
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.kubectl("delete endpoints/service-4").await?;
    Ok(format!("create endpoints {}/service-4: ", scene.namespace))
}
