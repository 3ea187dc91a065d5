//! Mirrored slices change hands on a live cluster, in both directions, and each side makes the same ones.
//!
//! Left out of what is compared: names, times, and the order of endpoints, which upstream leaves to chance.

use anyhow::{Result, ensure};
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{OPERATOR, endpoints, mirrored, service, slices, subset};
use crate::endpointslice::handover::change_hands;
use crate::support::{DEADLINE, Scene, with_cluster};

/// Endpoints of every sort, each with the number of its slices.
fn all() -> Vec<(Value, usize)> {
    let of = |name: &str, subsets: &[Value]| endpoints(name, subsets);
    let mut labelled = of("labelled", &[subset(&["10.1.0.1"], 80)]);
    labelled["metadata"]["labels"] = json!({"tier": "data", "service.kubernetes.io/headless": ""});
    labelled["metadata"]["annotations"] = json!({
        "a": "b", "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    });
    let mut skipped = of("skipped", &[subset(&["10.1.0.1"], 80)]);
    skipped["metadata"]["labels"] = json!({"endpointslice.kubernetes.io/skip-mirror": "true"});
    let mut lock = of("lock", &[subset(&["10.1.0.1"], 80)]);
    lock["metadata"]["annotations"] = json!({"control-plane.alpha.kubernetes.io/leader": "{}"});
    let target = json!({"kind": "Pod", "namespace": "elsewhere", "name": "a", "uid": "any", "apiVersion": "v1",
        "resourceVersion": "7", "fieldPath": "spec"});
    let full = json!({
        "addresses": [{"ip": "10.1.0.1", "hostname": "a", "nodeName": "node-0", "targetRef": target}],
        "notReadyAddresses": [{"ip": "10.1.0.2"}, {"ip": "fd00::2", "hostname": "b"}],
        "ports": [
            {"name": "https", "port": 443, "appProtocol": "https"}, {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "http", "port": 80},
        ],
    });
    let addresses = (0..1001).map(|n| json!({"ip": format!("10.9.{}.{}", n / 250, n % 250)}));
    let many = json!({"addresses": addresses.collect::<Vec<Value>>(), "ports": [{"port": 80}]});
    let apart = [subset(&["10.1.0.1", "fd00::1"], 80), subset(&["10.1.0.2"], 81), subset(&["10.1.0.2"], 82)];
    vec![
        (labelled, 1),
        (skipped, 0),
        (lock, 0),
        (of("full", &[full]), 2),
        (of("many", &[many]), 1),
        (of("apart", &apart), 3),
        (of("portless", &[json!({"addresses": [{"ip": "10.1.0.1"}]})]), 1),
        (of("empty", &[]), 0),
    ]
}

/// A slice without what differs between any two of the same kind.
fn masked(slice: &EndpointSlice) -> Result<String> {
    let mut slice = serde_json::to_value(slice)?;
    let meta = slice["metadata"].as_object_mut().unwrap();
    for field in ["name", "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
        meta.remove(field);
    }
    if let Some(endpoints) = slice["endpoints"].as_array_mut() {
        endpoints.sort_by_key(|endpoint| endpoint["addresses"].to_string());
    }
    Ok(serde_json::to_string_pretty(&slice)?)
}

/// The slices of each Service, once there are as many as there should be.
async fn made(scene: &Scene) -> Result<Vec<String>> {
    scene
        .wait_until("all is mirrored", DEADLINE, async || {
            let mut lines = Vec::new();
            for (endpoints, count) in all() {
                let name = endpoints["metadata"]["name"].as_str().unwrap_or_default();
                let slices = slices(scene, name).await?;
                ensure!(slices.len() == count, "{name}: {} slices", slices.len());
                lines.extend(slices.iter().map(masked).collect::<Result<Vec<String>>>()?);
            }
            lines.sort();
            Ok(lines)
        })
        .await
}

/// Name, uid and resourceVersion of each slice: equal if nobody has written anything.
async fn versions(scene: &Scene) -> Result<Vec<String>> {
    let mut slices: Vec<EndpointSlice> = scene.list("").await?;
    slices.retain(|slice| !slice.name_any().starts_with("marker"));
    let line = |slice: &EndpointSlice| format!("{} {:?} {:?}", slice.name_any(), slice.uid(), slice.resource_version());
    Ok(slices.iter().map(line).collect())
}

/// Waits until Endpoints that are made now are mirrored: so what came before has been looked at too.
async fn marker(scene: &Scene, name: &str) -> Result<()> {
    let name = format!("marker-{name}");
    scene.apply(&service(&name)).await?;
    scene.apply(&endpoints(&name, &[subset(&["10.1.2.3"], 80)])).await?;
    mirrored(scene, &name, &["80: 10.1.2.3"]).await.map(drop)
}

/// What was told of the addresses that are too many, each once, with the component that told it.
async fn told(scene: &Scene) -> Result<Vec<String>> {
    let events: Vec<Event> = scene.told("TooManyAddressesToMirror").await?;
    let line = |event: &Event| {
        let component = event.source.clone().and_then(|source| source.component);
        let about = &event.involved_object;
        format!("{component:?} {:?} {:?} {:?} {:?}", about.kind, about.name, event.type_, event.message)
    };
    let mut lines: Vec<String> = events.iter().map(line).collect();
    lines.dedup();
    Ok(lines)
}

#[test]
fn mirrored_slices_change_hands_without_a_write_and_are_made_anew_alike() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 1, ..ClusterOptions::with_controller_manager() }, async |scene| {
        for (endpoints, _) in all() {
            scene.apply(&service(endpoints["metadata"]["name"].as_str().unwrap_or_default())).await?;
            scene.apply(&endpoints).await?;
        }
        let (made, told) = (async || made(scene).await, async || told(scene).await);
        let all_versions = async || versions(scene).await;
        let anew =
            change_hands(scene, OPERATOR, made, told, all_versions, async |name| marker(scene, name).await).await?;
        assert_eq!(versions(scene).await?, anew, "what the operator left was not what upstream expects");
        Ok(())
    })
}
