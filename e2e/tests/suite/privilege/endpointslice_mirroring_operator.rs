//! Endpoints of which some addresses are too many, and slices that come, change and go with them.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Endpoints;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "mirrored"}, "spec": {"ports": ports},
    });
    scene.apply(&service).await?;
    let subset = |addresses: usize, port: usize| {
        let addresses = (0..addresses).map(|n| json!({"ip": format!("10.9.{}.{}", n / 250, n % 250)}));
        json!({"addresses": addresses.collect::<Vec<Value>>(), "ports": [ports[port]]})
    };
    let endpoints = |step: &str| {
        json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "mirrored", "labels": {"step": step}},
            "subsets": [subset(1001, 0), subset(1, 1)],
        })
    };
    scene.apply(&endpoints("0")).await?;
    let slices = async |number: usize, step: &str| {
        scene
            .wait_until(&format!("{number} slices at step {step}"), DEADLINE, async || {
                let slices: Vec<EndpointSlice> = scene.list("kubernetes.io/service-name=mirrored").await?;
                let is_of =
                    |slice: &EndpointSlice| slice.metadata.labels.as_ref().is_some_and(|own| own["step"] == step);
                let (found, all) = (slices.len(), slices.iter().all(is_of));
                ensure!(all && found == number, "{found}, {all}");
                Ok(())
            })
            .await
    };
    slices(2, "0").await?;
    // Each change tells of the address too many once more.
    for step in ["1", "2"] {
        scene.patch::<Endpoints>("mirrored", &json!({"metadata": {"labels": {"step": step}}})).await?;
        slices(2, step).await?;
    }
    scene
        .wait_until("an event is counted up", DEADLINE, async || {
            let events = scene.events("TooManyAddressesToMirror").await?;
            let most = events.iter().filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    // While its Endpoints are there, nobody else collects a slice.
    scene.patch::<Endpoints>("mirrored", &json!({"subsets": [subset(1, 1)]})).await?;
    slices(1, "2").await?;
    scene.kubectl("delete service/mirrored").await.map(drop)
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let slice = super::first::<EndpointSlice>(scene, "kubernetes.io/service-name=custom").await?;
    scene.patch::<EndpointSlice>(&slice, &json!({"endpoints": []})).await?;
    Ok(format!("patch endpointslices.discovery.k8s.io {}/{slice}: endpoints", scene.namespace))
}
