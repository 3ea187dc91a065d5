//! Addresses from pools, as a person without a cloud has them.

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::{addresses, balanced, start};
use crate::support::behind::{Behind, Gate, nth_work};
use crate::support::{DEADLINE, Scene, with_cluster};

const OPERATOR: &str = "service-lb-operator";
/// The last `--cloud-provider-endpoint` counts, and an empty one is none.
const FLAGS: [&str; 2] = ["--cloud-provider-endpoint=", "--address-pools=kube-system/address-pools"];
const CLASS: &str = "service.operators.local/address-pools";
const ASSIGNED: &str = "service.operators.local/AddressAssigned";

/// A Service of the pools.
fn pooled(name: &str, port: u16, annotations: &Value) -> Value {
    let mut service = balanced(name, port);
    service["spec"]["loadBalancerClass"] = json!(CLASS);
    service["metadata"]["annotations"] = annotations.clone();
    service
}

fn sharing() -> Value {
    json!({"service.operators.local/allow-shared-ip": "together"})
}

async fn configure(scene: &Scene, pools: &[(&str, Value)]) -> Result<()> {
    let data: serde_json::Map<String, Value> =
        pools.iter().map(|(name, pool)| ((*name).to_owned(), json!(pool.to_string()))).collect();
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "address-pools", "namespace": "kube-system"},
        "data": data,
    });
    e2e::apply::apply(&scene.client, "kube-system", &config_map).await.map(drop)
}

/// Waits until a Service has exactly these addresses, and its condition this reason.
async fn has(scene: &Scene, name: &str, expected: &[&str], reason: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} has {expected:?}"), DEADLINE, async || {
            let service: Service = scene.fetch(name).await?;
            ensure!(addresses(&service) == expected, "{:?}", service.status);
            let conditions = service.status.and_then(|status| status.conditions).unwrap_or_default();
            let assigned = conditions.iter().find(|condition| condition.type_ == ASSIGNED);
            ensure!(assigned.is_some_and(|condition| condition.reason == reason), "{assigned:?}");
            Ok(())
        })
        .await
}

/// Runs a test on a cluster of both families whose Services get addresses from pools.
fn with_pools(pools: &[(&str, Value)], test: impl AsyncFnOnce(&Scene, Behind) -> Result<()>) -> Result<()> {
    let flags = vec!["--service-cluster-ip-range=10.0.0.0/16,fd00:10:96::/108".to_owned()];
    with_cluster(ClusterOptions { nodes: 1, apiserver_flags: flags, ..ClusterOptions::default() }, async |scene| {
        configure(scene, pools).await?;
        let operator = start(scene, OPERATOR, OPERATOR, &FLAGS).await?;
        test(scene, operator).await
    })
}

#[test]
fn services_keep_their_addresses_over_a_restart_and_wait_for_one_that_becomes_free() -> Result<()> {
    let pools = [("small", json!({"addresses": ["192.0.2.1-192.0.2.3"]}))];
    with_pools(&pools, async |scene, mut operator| {
        scene.apply(&pooled("first", 80, &json!({}))).await?;
        has(scene, "first", &["192.0.2.1"], "Assigned").await?;
        scene.apply(&pooled("http", 80, &sharing())).await?;
        has(scene, "http", &["192.0.2.2"], "Assigned").await?;
        scene.apply(&pooled("https", 443, &sharing())).await?;
        has(scene, "https", &["192.0.2.2"], "Assigned").await?;
        let wanted = json!({"service.operators.local/load-balancer-ips": "192.0.2.3"});
        scene.apply(&pooled("wanted", 80, &wanted)).await?;
        has(scene, "wanted", &["192.0.2.3"], "Assigned").await?;
        scene.apply(&pooled("waiting", 80, &json!({}))).await?;
        has(scene, "waiting", &[], "PoolExhausted").await?;
        let told = scene.told("AddressNotAssigned").await?;
        let message = told.first().and_then(|event| event.message.clone()).unwrap_or_default();
        ensure!(message == "Cannot assign an address: no address is free in small", "{message}");

        operator.kill_and_restart()?;
        operator.operator.wait_ready().await?;
        scene.kubectl("delete service/first").await?;
        has(scene, "waiting", &["192.0.2.1"], "Assigned").await?;
        let kept = [("http", "192.0.2.2"), ("https", "192.0.2.2"), ("wanted", "192.0.2.3")];
        for (name, address) in kept {
            has(scene, name, &[address], "Assigned").await?;
        }
        Ok(())
    })
}

#[test]
fn a_service_of_two_families_gets_both_and_a_wrong_pool_is_told() -> Result<()> {
    let pools = [
        ("both", json!({"addresses": ["192.0.2.0/30", "2001:db8::/126"]})),
        ("wrong", json!({"addresses": ["192.0.2.0/33"]})),
    ];
    with_pools(&pools, async |scene, _operator| {
        let mut dual = pooled("dual", 80, &json!({}));
        dual["spec"]["ipFamilyPolicy"] = json!("RequireDualStack");
        scene.apply(&dual).await?;
        has(scene, "dual", &["192.0.2.0", "2001:db8::"], "Assigned").await?;
        // The pools' ConfigMap is in another namespace, and so are the events about it.
        let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(scene.client.clone(), "kube-system");
        scene
            .wait_until("the wrong pool is told", DEADLINE, async || {
                let events = events.list(&kube::api::ListParams::default()).await?;
                let told = events.iter().find(|event| event.reason.as_deref() == Some("InvalidAddressPool"));
                let message = told.and_then(|event| event.message.clone()).context("there is no event")?;
                ensure!(message.starts_with("The pool wrong is left out: "), "{message}");
                Ok(())
            })
            .await
    })
}

#[test]
fn an_operator_killed_at_its_writes_gives_no_address_twice() -> Result<()> {
    let pools = [("pool", json!({"addresses": ["192.0.2.0/28"]}))];
    with_pools(&pools, async |scene, mut operator| {
        for (number, happens) in [(0, false), (1, true)] {
            let gate = Gate::new();
            operator.proxy.add(nth_work(if happens { gate.after() } else { gate.before() }, 2));
            for name in ["a", "b", "c"] {
                scene.apply(&pooled(&format!("{name}-{number}"), 80, &json!({}))).await?;
            }
            gate.reached().await;
            operator.kill_and_restart()?;
        }
        scene
            .wait_until("each Service has an address of its own", DEADLINE, async || {
                let services: Vec<Service> = scene.list("").await?;
                let mut given: Vec<String> = services.iter().flat_map(addresses).collect();
                given.sort();
                given.dedup();
                ensure!(
                    given.len() == 6,
                    "{given:?} for {:?}",
                    services.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
                );
                Ok(())
            })
            .await
    })
}

#[test]
fn services_of_other_classes_and_of_none_are_left_alone() -> Result<()> {
    let pools = [("pool", json!({"addresses": ["192.0.2.0/28"]}))];
    with_pools(&pools, async |scene, operator| {
        let mut foreign = pooled("foreign", 80, &json!({}));
        foreign["spec"]["loadBalancerClass"] = json!("metallb.io/metallb");
        scene.apply(&foreign).await?;
        scene.apply(&balanced("without", 80)).await?;
        scene
            .patch_status::<Service>(
                "foreign",
                &json!({"status": {"loadBalancer": {"ingress": [
            {"ip": "192.0.2.0", "ipMode": "VIP"}]}}}),
            )
            .await?;
        scene.apply(&pooled("own", 80, &json!({}))).await?;
        has(scene, "own", &["192.0.2.1"], "Assigned").await?;
        let written = operator.work();
        ensure!(written.iter().all(|write| write.path.contains("/services/own")), "{written:?}");
        Ok(())
    })
}
