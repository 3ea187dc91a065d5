//! EndpointSlices: which pods a Service lists, in which state, and what becomes of the slices when it changes.
//! Left out: packing, named ports and hints in all their cases, which are tables of the operator.

mod families;
pub(crate) mod handover;
mod life;
mod rolling;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, template};

/// A Service of the pods labelled `app=NAME`, on one port.
fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

/// A pod labelled `app=APP`.
fn pod(name: &str, app: &str) -> Value {
    let mut pod = template(app);
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    pod
}

/// The slices of a Service, by name.
async fn slices(scene: &Scene, service: &str) -> Result<Vec<EndpointSlice>> {
    let mut slices: Vec<EndpointSlice> = scene.list(&format!("kubernetes.io/service-name={service}")).await?;
    slices.sort_by_key(ResourceExt::name_any);
    Ok(slices)
}

/// The endpoints of one slice.
fn members(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

/// The endpoints of these slices, by pod. A pod that is listed twice is an error.
fn endpoints(slices: &[EndpointSlice]) -> Result<BTreeMap<String, &Endpoint>> {
    let mut endpoints = BTreeMap::new();
    for endpoint in slices.iter().flat_map(members) {
        let pod = endpoint.target_ref.as_ref().and_then(|target| target.name.clone()).context("of no pod")?;
        ensure!(endpoints.insert(pod.clone(), endpoint).is_none(), "{pod} is listed twice");
    }
    Ok(endpoints)
}

/// The conditions of each endpoint: ready, serving, terminating; `?` where one is not set.
fn conditions(slices: &[EndpointSlice]) -> Result<Vec<String>> {
    let letter = |condition: Option<bool>, letter: &'static str| match condition {
        Some(true) => letter,
        Some(false) => "-",
        None => "?",
    };
    let line = |(pod, endpoint): (String, &Endpoint)| {
        let conditions = endpoint.conditions.clone().unwrap_or_default();
        let letters = [(conditions.ready, "r"), (conditions.serving, "s"), (conditions.terminating, "t")];
        format!("{pod} {}", letters.map(|(condition, of)| letter(condition, of)).concat())
    };
    Ok(endpoints(slices)?.into_iter().map(line).collect())
}

/// The slices of a Service, once their endpoints are in these states.
async fn listed(scene: &Scene, service: &str, expected: &[&str]) -> Result<Vec<EndpointSlice>> {
    scene
        .wait_until(&format!("{service} lists {expected:?}"), DEADLINE, async || {
            let slices = slices(scene, service).await?;
            ensure!(!slices.is_empty(), "there is no slice");
            let found = conditions(&slices)?;
            ensure!(found == expected, "{found:?}");
            Ok(slices)
        })
        .await
}

/// The slices of a Service, once they list exactly its ready pods, all of them ready, with their addresses.
async fn complete(scene: &Scene, service: &str, pods: usize) -> Result<Vec<EndpointSlice>> {
    scene
        .wait_until(&format!("{service} lists its {pods} pods"), DEADLINE, async || {
            let living: Vec<Pod> = scene.list(&format!("app={service}")).await?;
            ensure!(living.len() == pods, "there are {} pods", living.len());
            let slices = slices(scene, service).await?;
            let endpoints = endpoints(&slices)?;
            ensure!(endpoints.len() == pods, "{} are listed", endpoints.len());
            for pod in &living {
                let endpoint = endpoints.get(&pod.name_any()).with_context(|| format!("without {}", pod.name_any()))?;
                is_of(endpoint, pod).with_context(|| format!("{}: {endpoint:?}", pod.name_any()))?;
            }
            drop(endpoints);
            Ok(slices)
        })
        .await
}

/// Whether an endpoint says of a pod what is true.
fn is_of(endpoint: &Endpoint, pod: &Pod) -> Result<()> {
    let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
    ensure!(ready == Some(true), "it is not ready");
    let uid = endpoint.target_ref.as_ref().and_then(|target| target.uid.clone());
    ensure!(uid == pod.metadata.uid, "it is of another pod");
    let ips = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten()).map(|ip| ip.ip.clone());
    ensure!(endpoint.addresses == ips.collect::<Vec<_>>(), "it has other addresses");
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    ensure!(endpoint.node_name == node && endpoint.zone.is_some(), "it is elsewhere");
    Ok(())
}

/// Waits until a Service that is created now has a slice: so what came before has been looked at too.
async fn marker(scene: &Scene, name: &str) -> Result<()> {
    scene.apply(&service(name)).await?;
    listed(scene, name, &[]).await.map(drop)
}

/// Name, uid and resourceVersion of each slice: equal if nobody has written anything.
async fn versions(scene: &Scene, service: &str) -> Result<Vec<String>> {
    let slices = slices(scene, service).await?;
    Ok(slices
        .iter()
        .map(|slice| format!("{} {:?} {:?}", slice.name_any(), slice.uid(), slice.resource_version()))
        .collect())
}
