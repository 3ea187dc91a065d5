//! Slices that come, change and go, and an event that is counted up.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;

use crate::support::{DEADLINE, Scene, template};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"step": name}},
            "spec": {"selector": {"app": "listed"}, "ports": [{"port": 80, "targetPort": "http"}]},
        })
    };
    scene.apply(&service("slices")).await?;
    // Each calls another port so, and is in a slice of its own.
    for (name, port) in [("listed-0", 8080), ("listed-1", 8081)] {
        let mut pod = template("listed");
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = name.into();
        pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": port}]);
        scene.apply(&pod).await?;
    }
    let slices = async |number: usize| {
        scene
            .wait_until(&format!("{number} slices"), DEADLINE, async || {
                let slices: Vec<EndpointSlice> = scene.list("kubernetes.io/service-name=slices").await?;
                let listed = slices
                    .iter()
                    .filter(|slice| slice.endpoints.as_ref().is_some_and(|endpoints| endpoints.len() == 1))
                    .count();
                ensure!((slices.len(), listed) == (number, number), "{slices:?}");
                Ok(())
            })
            .await
    };
    slices(2).await?;
    scene.kubectl("delete pod/listed-1").await?;
    slices(1).await?;
    // One endpoint cannot be spread over three zones, which is told at each look.
    let mode = "service.kubernetes.io/topology-mode";
    for step in 0..3 {
        let patch = json!({"metadata": {"annotations": {mode: "Auto"}, "labels": {"step": step.to_string()}}});
        scene.patch::<Service>("slices", &patch).await?;
        scene
            .wait_until("the event is posted, or counted up", DEADLINE, async || {
                let events = scene.events("TopologyAwareHintsDisabled").await?;
                let count = events.iter().filter_map(|event| event.count).max();
                ensure!(count > Some(step), "the highest count is {count:?}");
                Ok(())
            })
            .await?;
    }
    Ok(())
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let slice = super::first::<EndpointSlice>(scene, "kubernetes.io/service-name=service-5").await?;
    scene.patch::<EndpointSlice>(&slice, &json!({"endpoints": []})).await?;
    Ok(format!("patch endpointslices.discovery.k8s.io {}/{slice}: endpoints", scene.namespace))
}
