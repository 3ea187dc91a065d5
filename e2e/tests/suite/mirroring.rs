//! Endpoints that somebody writes for a Service without a selector, and the slices that mirror them.
//! Left out: which address is in which slice in all cases, which are tables of the operator.

mod faults;
mod handover;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Endpoints;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, on_shared_cluster};

const OPERATOR: &str = "endpointslice-mirroring-operator";

/// A Service without a selector.
fn service(name: &str) -> Value {
    let spec = json!({"ports": [{"name": "example", "port": 80}]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn endpoints(name: &str, subsets: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name}, "subsets": subsets})
}

/// Ready addresses on one port. It has a name, because each of several ports of one slice needs one.
fn subset(ips: &[&str], port: i32) -> Value {
    let addresses: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip})).collect();
    json!({"addresses": addresses, "ports": [{"name": format!("of-{port}"), "port": port}]})
}

/// The slices of a Service, by name.
async fn slices(scene: &Scene, service: &str) -> Result<Vec<EndpointSlice>> {
    let mut slices: Vec<EndpointSlice> = scene.list(&format!("kubernetes.io/service-name={service}")).await?;
    slices.sort_by_key(ResourceExt::name_any);
    Ok(slices)
}

/// `80: 10.1.2.3 10.1.2.4`.
fn line(slice: &EndpointSlice) -> String {
    let ports = slice.ports.iter().flatten().filter_map(|port| port.port);
    let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
    let endpoints = slice.endpoints.iter().flatten();
    let mut addresses: Vec<String> = endpoints.flat_map(|endpoint| endpoint.addresses.clone()).collect();
    addresses.sort();
    format!("{}: {}", ports.join(","), addresses.join(" "))
}

/// Waits until a Service has exactly these slices.
async fn mirrored(scene: &Scene, service: &str, expected: &[&str]) -> Result<Vec<EndpointSlice>> {
    scene
        .wait_until(&format!("{service} has {expected:?}"), DEADLINE, async || {
            let slices = slices(scene, service).await?;
            let mut lines: Vec<String> = slices.iter().map(line).collect();
            lines.sort();
            ensure!(lines == expected, "{lines:?}");
            Ok(slices)
        })
        .await
}

/// Upstream: "should mirror a custom Endpoints resource through create update and delete",
/// `test/e2e/network/endpointslicemirroring.go`.
#[test]
fn custom_endpoints_are_mirrored_when_they_come_change_and_go() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&service("custom")).await?;
        scene.apply(&endpoints("custom", &[subset(&["10.1.2.3"], 80)])).await?;
        let made = mirrored(scene, "custom", &["80: 10.1.2.3"]).await?;
        assert_eq!(made[0].owner_references()[0].kind, "Endpoints");
        scene.apply(&endpoints("custom", &[subset(&["10.2.3.4"], 80)])).await?;
        let changed = mirrored(scene, "custom", &["80: 10.2.3.4"]).await?;
        assert_eq!(changed[0].uid(), made[0].uid(), "it is the same slice");

        // While a Service selects pods, its slices are somebody else's.
        scene.kubectl(r#"patch service/custom -p {"spec":{"selector":{"app":"nobody"}}}"#).await?;
        let ours = async |expected: usize| {
            let ours = "endpointslice.kubernetes.io/managed-by=endpointslicemirroring-controller.k8s.io";
            scene
                .wait_until(&format!("{expected} mirrored slices"), DEADLINE, async || {
                    let found = scene.list::<EndpointSlice>(ours).await?.len();
                    ensure!(found == expected, "{found}");
                    Ok(())
                })
                .await
        };
        ours(0).await?;
        scene.kubectl("delete service/custom").await?;
        scene.gone::<Endpoints>("custom").await?;

        scene.apply(&service("again")).await?;
        scene.apply(&endpoints("again", &[subset(&["10.1.2.3"], 80), subset(&["10.1.2.3"], 81)])).await?;
        mirrored(scene, "again", &["80,81: 10.1.2.3"]).await?;
        scene.api::<Endpoints>().delete("again", &DeleteParams::default()).await?;
        mirrored(scene, "again", &[]).await.map(drop)
    })
}
