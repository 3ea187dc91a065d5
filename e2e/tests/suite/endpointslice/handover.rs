//! Slices change hands on a live cluster, in both directions, and each side makes the same ones.
//!
//! Left out of what is compared: names, times, and the order of endpoints, which upstream leaves to chance.

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use super::{marker, members, pod, service, slices, versions};
use crate::support::{DEADLINE, Scene, start_operators, with_cluster};

const OPERATOR: &str = "endpointslice-operator";
/// The Services whose endpoints are meant for some clients.
const HINTED: [&str; 4] = ["spread", "close", "same-zone", "same-node"];

/// Pods on each of five nodes in three zones: some call their port so, some otherwise, some are not ready.
pub(crate) async fn pods(scene: &Scene) -> Result<()> {
    for n in 0..5 {
        let mut pod = pod(&format!("web-{n}"), "web");
        pod["spec"]["nodeName"] = format!("node-{n}").into();
        pod["spec"]["hostname"] = format!("web-{n}").into();
        pod["spec"]["subdomain"] = "headless".into();
        pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 8080 + n % 2}]);
        scene.apply(&pod).await?;
    }
    let mut unready = pod("slow-0", "slow");
    unready["metadata"]["annotations"] = json!({"pods.e2e/becomes": "never-ready"});
    unready["spec"]["nodeName"] = "node-1".into();
    scene.apply(&unready).await.map(drop)
}

/// Services of every sort, by name, each with the number of its slices and of its endpoints.
pub(crate) fn services() -> Vec<(&'static str, Value, usize, usize)> {
    let of = |name: &str, app: &str, spec: Value| {
        let mut service = service(name);
        service["spec"]["selector"]["app"] = app.into();
        service["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        service
    };
    let mut labelled = of("labelled", "web", json!({}));
    labelled["metadata"]["labels"] = json!({"tier": "front", "service.kubernetes.io/headless": "evil"});
    let mut spread = of("spread", "web", json!({}));
    spread["metadata"]["annotations"] = json!({"service.kubernetes.io/topology-mode": "Auto"});
    let ports = json!([
        {"name": "https", "port": 443, "targetPort": 8443, "appProtocol": "https"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "http", "port": 80, "targetPort": 8080},
    ]);
    let named =
        json!([{"name": "web", "port": 80, "targetPort": "http"}, {"name": "no", "port": 1, "targetPort": "no"}]);
    let mut unported = of("unported", "web", json!({"clusterIP": "None"}));
    unported["spec"].as_object_mut().unwrap().remove("ports");
    vec![
        ("labelled", labelled, 1, 5),
        ("spread", spread, 1, 5),
        ("many-ports", of("many-ports", "web", json!({"ports": ports})), 1, 5),
        ("named-ports", of("named-ports", "web", json!({"ports": named})), 2, 5),
        ("headless", of("headless", "web", json!({"clusterIP": "None"})), 1, 5),
        ("unported", unported, 1, 5),
        ("slow", of("slow", "slow", json!({})), 1, 1),
        ("published", of("published", "slow", json!({"publishNotReadyAddresses": true})), 1, 1),
        ("close", of("close", "web", json!({"trafficDistribution": "PreferClose"})), 1, 5),
        ("same-zone", of("same-zone", "web", json!({"trafficDistribution": "PreferSameZone"})), 1, 5),
        ("same-node", of("same-node", "web", json!({"trafficDistribution": "PreferSameNode"})), 1, 5),
        ("nobody", of("nobody", "nobody", json!({})), 1, 0),
    ]
}

/// A slice without what differs between any two of the same kind.
fn masked(slice: EndpointSlice) -> Result<Value> {
    let mut slice = serde_json::to_value(slice)?;
    let meta = slice["metadata"].as_object_mut().unwrap();
    for field in ["name", "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
        meta.remove(field);
    }
    meta.remove("annotations");
    if let Some(endpoints) = slice["endpoints"].as_array_mut() {
        endpoints.sort_by_key(|endpoint| endpoint["targetRef"]["name"].as_str().map(str::to_owned));
    }
    Ok(slice)
}

/// The slices of each Service, once there are as many as there should be.
async fn made(scene: &Scene) -> Result<Vec<String>> {
    scene
        .wait_until("every service has its slices", DEADLINE, async || {
            let mut lines = Vec::new();
            for (name, _, count, listed) in services() {
                let slices = slices(scene, name).await?;
                let endpoints: Vec<&Endpoint> = slices.iter().flat_map(members).collect();
                let found = (slices.len(), endpoints.len());
                ensure!(found == (count, listed), "{name}: {} endpoints in {} slices", found.1, found.0);
                let is_hinted = HINTED.contains(&name);
                ensure!(
                    endpoints.iter().all(|endpoint| endpoint.hints.is_some() == is_hinted),
                    "{name}: {endpoints:?}"
                );
                let ready = endpoints
                    .iter()
                    .filter(|endpoint| endpoint.conditions.as_ref().is_some_and(|of| of.ready == Some(true)));
                ensure!(name == "slow" || ready.count() == listed, "{name}: {endpoints:?}");
                let mut own: Vec<String> = Vec::new();
                for slice in slices {
                    own.push(serde_json::to_string_pretty(&masked(slice)?)?);
                }
                own.sort();
                lines.extend(own);
            }
            Ok(lines)
        })
        .await
}

/// The versions of each Service's slices.
async fn all_versions(scene: &Scene) -> Result<BTreeMap<&'static str, Vec<String>>> {
    let mut all = BTreeMap::new();
    for (name, ..) in services() {
        all.insert(name, versions(scene, name).await?);
    }
    Ok(all)
}

/// Waits until upstream has told that it took the hints of `spread` for want of zones, though there are three.
///
/// Its workers and the one that counts nodes start side by side; who looks at a Service before the nodes were counted
/// finds no zone (`endpointslice_controller.go`, `Run`; `topologycache.go`, `NewTopologyCache` and `getAllocations`).
async fn took_hints_too_early(scene: &Scene) -> Result<()> {
    let reason = "TopologyAwareHintsDisabled";
    scene
        .wait_until("upstream tells that it found one zone", DEADLINE, async || {
            let messages: Vec<_> = scene.events(reason).await?.into_iter().filter_map(|event| event.message).collect();
            let is_early = |message: &String| message.starts_with("Nodes only ready in one zone");
            ensure!(messages.iter().any(is_early), "{reason}: {messages:?}");
            Ok(())
        })
        .await
}

/// The events about hints, each once, with the component that told them.
async fn told(scene: &Scene) -> Result<Vec<String>> {
    let events: Vec<Event> = scene.told("TopologyAwareHintsEnabled").await?;
    let line = |event: &Event| {
        let component = event.source.clone().and_then(|source| source.component);
        format!("{component:?} {:?} {:?} {:?}", event.involved_object.name, event.type_, event.message)
    };
    let mut lines: Vec<String> = events.iter().map(line).collect();
    lines.dedup();
    Ok(lines)
}

/// Slices that upstream has made change hands, and back again once they were all made anew. Gives their versions from just
/// before they went back.
pub(crate) async fn change_hands<V: Debug + PartialEq>(
    scene: &Scene,
    operator: &str,
    made: impl AsyncFn() -> Result<Vec<String>>,
    told: impl AsyncFn() -> Result<Vec<String>>,
    versions: impl AsyncFn() -> Result<V>,
    marker: impl AsyncFn(&str) -> Result<()>,
) -> Result<V> {
    let expected = made().await?;
    let told_by_upstream = told().await?;
    assert_eq!(told_by_upstream.len(), 1, "{told_by_upstream:?}");
    marker("before").await?;
    let before = versions().await?;

    scene.cluster.stop_controller_manager().await?;
    scene.cluster.start_controller_manager(ControllerManager::without([upstream_controller(operator)])).await?;
    let mut operators = start_operators(&scene.cluster, [operator]).await?;
    marker("handed-over").await?;
    assert_eq!(versions().await?, before, "the operator wrote what needed no write");

    let all = ListParams::default();
    scene.api::<EndpointSlice>().delete_collection(&DeleteParams::default(), &all).await?;
    let found = made().await?;
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected);
    }
    assert_eq!(told().await?, told_by_upstream, "the operator told something else");
    let anew = versions().await?;

    for operator in &mut operators {
        operator.terminate().await?;
    }
    scene.cluster.stop_controller_manager().await?;
    scene.cluster.start_controller_manager(ControllerManager::all()).await?;
    marker("handed-back").await?;
    Ok(anew)
}

#[test]
fn slices_change_hands_without_a_write_and_are_made_anew_alike() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        pods(scene).await?;
        for (_, service, ..) in services() {
            scene.apply(&service).await?;
        }
        let (made, told) = (async || made(scene).await, async || told(scene).await);
        let versions = async || all_versions(scene).await;
        let anew = change_hands(scene, OPERATOR, made, told, versions, async |name| marker(scene, name).await).await?;
        let mut left = all_versions(scene).await?;
        if left["spread"] != anew["spread"] {
            took_hints_too_early(scene).await?;
            left.insert("spread", anew["spread"].clone());
        }
        assert_eq!(left, anew, "what the operator left was not what upstream expects");
        Ok(())
    })
}
