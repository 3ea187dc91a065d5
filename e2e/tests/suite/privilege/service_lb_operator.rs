//! A Service that has a load balancer, is edited, and wants none any more.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

const NAME: &str = "balanced";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let services: Api<Service> = Api::namespaced(scene.client.clone(), &scene.namespace);
    // A Service that is too large for the cache is read live.
    let large = json!({"e2e/large": "x".repeat(70_000)});
    let spec = json!({"type": "LoadBalancer", "ports": [{"port": 80}]});
    let metadata = json!({"name": NAME, "annotations": large});
    scene.apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})).await?;
    has_addresses(scene, &services, true).await?;
    let cluster_ip = Patch::Merge(json!({"spec": {"type": "ClusterIP"}}));
    services.patch(NAME, &PatchParams::default(), &cluster_ip).await?;
    has_addresses(scene, &services, false).await?;
    let again = Patch::Merge(json!({"spec": {"type": "LoadBalancer"}}));
    services.patch(NAME, &PatchParams::default(), &again).await?;
    has_addresses(scene, &services, true).await?;
    scene.kubectl(&format!("delete service/{NAME}")).await?;
    scene.gone_from(&services, NAME).await
}

/// With addresses a Service has the finalizer too, and without them it has none.
async fn has_addresses(scene: &Scene, services: &Api<Service>, expected: bool) -> Result<()> {
    scene
        .wait_until(&format!("the Service has addresses: {expected}"), DEADLINE, async || {
            let service = serde_json::to_value(services.get(NAME).await?)?;
            let has =
                |pointer: &str| service.pointer(pointer).and_then(Value::as_array).is_some_and(|all| !all.is_empty());
            let is_so = has("/status/loadBalancer/ingress") == expected && has("/metadata/finalizers") == expected;
            ensure!(is_so, "{service}");
            Ok(())
        })
        .await
}
