//! Which pod is listed, and by which of its addresses and ports: upstream's `endpoints_controller_test.go`.

use std::sync::Arc;

use endpoints_operator::objects::{Pod, Service};
use endpoints_operator::plan::subsets::{address_of, count, subsets_of};
use serde_json::{Value, json};
use shared::testing::ObjectBuilder;

use crate::world::{ips, new_pod, service};

const V4: &str = "1.2.3.4";
const V6: &str = "2000::4";

fn family_of(cluster_ip: Value, families: Value, pod_ips: &[&str]) -> Option<String> {
    let service = service().set(&["spec", "clusterIP"], cluster_ip).set(&["spec", "ipFamilies"], families);
    let service: Arc<Service> = service.build();
    let pod: Arc<Pod> = ips(new_pod(0, true), pod_ips).build();
    let address = address_of(&service, &pod)?;
    assert_eq!(address.node.as_deref(), Some("node"));
    assert_eq!(address.target.as_ref().map(|target| &target.key), Some(&pod.metadata.key));
    Some(address.ip.to_string())
}

/// Upstream: `TestPodToEndpointAddressForService`, whose pods' IPs begin with a zero.
#[test]
fn a_pod_is_listed_by_its_first_address_of_the_services_first_family() {
    let row = |pod_ips: &[&str], cluster_ip: &str, families: Value, expected: Option<&str>| {
        assert_eq!(family_of(json!(cluster_ip), families, pod_ips).as_deref(), expected, "{cluster_ip} {pod_ips:?}");
    };
    let (v4, v6) = (|| json!(["IPv4"]), || json!(["IPv6"]));
    row(&["01.2.3.4"], "10.0.0.1", v4(), Some(V4));
    row(&["01.2.3.4", V6], "10.0.0.1", v4(), Some(V4));
    row(&["2000::0004", V4], "10.0.0.1", v4(), Some(V4));
    row(&["01.2.3.4"], "None", v4(), Some(V4));
    row(&["01.2.3.4", V6], "None", v4(), Some(V4));
    row(&["01.2.3.4", V6], "3000::1", v6(), Some(V6));
    row(&["2000::0004"], "None", v6(), Some(V6));
    row(&["01.2.3.4", V6], "None", v6(), Some(V6));
    row(&["01.2.3.4"], "3000::1", v6(), None);
    row(&["01.2.3.4", V6], "10.0.0.1", json!(["IPv6", "IPv4"]), Some(V6));
}

/// Upstream: `TestPodToEndpointAddressForServiceEmptyIPFamilies`.
#[test]
fn without_families_the_ip_of_the_service_or_of_the_pod_decides() {
    let row = |pod_ips: &[&str], cluster_ip: Value, expected: Option<&str>| {
        assert_eq!(family_of(cluster_ip, Value::Null, pod_ips).as_deref(), expected);
    };
    row(&[V4, V6], json!("10.0.0.1"), Some(V4));
    row(&[V6, V4], json!("10.0.0.1"), Some(V4));
    row(&[V4, V6], json!("3000::1"), Some(V6));
    row(&[V4], json!("3000::1"), None);
    row(&[V4, V6], json!("None"), Some(V4));
    row(&[V6, V4], json!("None"), Some(V6));
    row(&[V6, V4], Value::Null, Some(V6));
    row(&[], json!("None"), None);
}

/// Upstream: `TestSyncServiceAddresses`.
#[test]
fn readiness_phase_and_deletion_say_whether_a_pod_is_listed() {
    let row = |phase: &str, ready: bool, terminating: bool, publishes: bool, expected: (usize, usize)| {
        let service = service().set(&["spec", "publishNotReadyAddresses"], publishes);
        let pod = new_pod(0, ready).phase(phase);
        let pod = if terminating { pod.terminating() } else { pod };
        let subsets = subsets_of(&service.build::<Service>(), &[pod.build()]);
        assert_eq!(count(&subsets), expected, "{phase} {ready} {terminating} {publishes}");
    };
    for phase in ["Running", "Unknown", "Pending"] {
        row(phase, true, false, false, (1, 0));
        row(phase, true, true, false, (0, 0));
        row(phase, false, false, false, (0, 1));
        row(phase, false, true, false, (0, 0));
        row(phase, false, false, true, (1, 0));
        row(phase, false, true, true, (1, 0));
    }
    for phase in ["Failed", "Succeeded"] {
        row(phase, false, false, false, (0, 0));
        row(phase, false, false, true, (0, 0));
    }
}

fn ports_of(service_ports: Value, pod: &ObjectBuilder) -> Value {
    let service: Arc<Service> = service().set(&["spec", "ports"], service_ports).build();
    let subsets = subsets_of(&service, &[pod.build()]);
    subsets.first().map(|subset| json!(subset.ports)).unwrap_or_default()
}

/// Upstream: `TestSyncEndpointsAddDeletePorts`, `TestEndpointPortFromServicePort`.
#[test]
fn ports_are_those_that_the_pod_has() {
    let named = |name: &str, target: Value| json!({ "name": name, "protocol": "TCP", "targetPort": target });
    let http = || named("http", json!("port0"));
    let found = json!({ "name": "http", "port": 8080, "protocol": "TCP" });
    assert_eq!(ports_of(json!([http()]), &new_pod(0, true)), json!([found]));
    assert_eq!(ports_of(json!([http(), named("gone", json!("port9"))]), &new_pod(0, true)), json!([found]));
    assert_eq!(ports_of(json!([named("gone", json!("port9"))]), &new_pod(0, true)), Value::Null);
    let mut app = http();
    app["appProtocol"] = "kubernetes.io/h2c".into();
    assert_eq!(ports_of(json!([app]), &new_pod(0, true))[0]["appProtocol"], "kubernetes.io/h2c");
    // A port without a number is as good as none.
    assert_eq!(ports_of(json!([{ "protocol": "TCP" }]), &new_pod(0, true)), json!([]));
}

/// Upstream: `TestShouldSetHostname`.
#[test]
fn a_pod_has_its_host_name_in_the_service_that_is_its_subdomain() {
    let row = |subdomain: &str, expected: Option<&str>| {
        let pod = new_pod(0, true).set(&["spec", "hostname"], "a").set(&["spec", "subdomain"], subdomain);
        let pod: Arc<Pod> = pod.build();
        let address = address_of(&service().build::<Service>(), &pod).unwrap();
        assert_eq!(address.hostname.as_deref(), expected);
    };
    row("foo", Some("a"));
    row("bar", None);
    row("", None);
}
