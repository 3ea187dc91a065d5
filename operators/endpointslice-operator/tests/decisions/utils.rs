//! Ports, labels, address types and single endpoints: upstream's `utils_test.go`.

use std::sync::Arc;

use endpointslice_operator::objects::{AddressType, EndpointPort, EndpointSlice, Pod, Service, ServicePort};
use endpointslice_operator::plan::utils::{
    address_types, endpoint_ports, find_port, in_order, labels_differ, pod_to_endpoint, slice_labels,
};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::testing::{ObjectBuilder, object, uid};

use crate::world::{ips, new_pod, own_labels, service};

/// Upstream: `TestPodToEndpoint`.
#[test]
fn an_endpoint_says_where_its_pod_is_and_whether_it_serves() {
    let row = |pod: ObjectBuilder, service: &Service, zone: Option<&str>, expected: Value| {
        let pod: Arc<Pod> = pod.build();
        let zone = zone.map(Text::new);
        let endpoint = pod_to_endpoint(service, &AddressType::IPv4, &pod, zone.as_ref()).unwrap();
        let mut whole = json!({
            "addresses": ["10.2.0.2"],
            "targetRef":
                { "kind": "Pod", "namespace": "default", "name": "pod0001", "uid": uid("pod0001").to_string() },
            "nodeName": "node-1",
        });
        whole.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
        assert_eq!(json!(endpoint), whole);
        assert_eq!(serde_json::from_value::<endpointslice_operator::objects::Endpoint>(whole).unwrap(), endpoint);
    };
    let conditions = |ready: bool, serving: bool, terminating: bool| json!({ "conditions": { "ready": ready, "serving": serving, "terminating": terminating } });
    let foo: Arc<Service> = service("foo").build();
    let publishing: Arc<Service> = service("publishnotready").set(&["spec", "publishNotReadyAddresses"], true).build();
    let (ready, unready) = (|| new_pod(1, true), || new_pod(1, false));
    row(ready(), &foo, None, conditions(true, true, false));
    row(ready(), &publishing, None, conditions(true, true, false));
    row(unready(), &foo, None, conditions(false, false, false));
    row(unready(), &publishing, None, conditions(true, false, false));
    row(ready().terminating(), &foo, None, conditions(false, true, true));
    row(unready().terminating(), &foo, None, conditions(false, false, true));
    row(ready().terminating(), &publishing, None, conditions(true, true, true));

    let with = |field: &str, value: Value| {
        let mut expected = conditions(true, true, false);
        expected[field] = value;
        expected["zone"] = "us-central1-a".into();
        expected
    };
    let zone = Some("us-central1-a");
    row(ready(), &foo, zone, with("zone", json!("us-central1-a")));
    let multi = ips(ready(), &["1.2.3.4", "1234::5678:0000:0000:9abc:def0"]);
    row(multi, &foo, zone, with("addresses", json!(["1.2.3.4"])));
    let host =
        |subdomain: &str| ready().set(&["spec", "hostname"], "example-hostname").set(&["spec", "subdomain"], subdomain);
    row(host("foo"), &foo, zone, with("hostname", json!("example-hostname")));
    // Upstream: `TestShouldSetHostname`.
    row(host("bar"), &foo, zone, with("zone", json!("us-central1-a")));
    row(host(""), &foo, zone, with("zone", json!("us-central1-a")));
    row(ready().set(&["spec", "subdomain"], "foo"), &foo, zone, with("zone", json!("us-central1-a")));

    let pod: Arc<Pod> = ready().build();
    assert_eq!(pod_to_endpoint(&foo, &AddressType::IPv6, &pod, None), None);
}

fn ports_of(service_ports: Value, pod_spec: Value) -> Vec<EndpointPort> {
    let service: Arc<Service> = service("foo").set(&["spec", "ports"], service_ports).build();
    let pod: Arc<Pod> = new_pod(1, true).set(&["spec"], pod_spec).build();
    endpoint_ports(&service, &pod.ports)
}

/// Upstream: `TestGetEndpointPorts`.
#[test]
fn ports_are_those_that_the_pod_has() {
    let check = |service_ports: Value, pod_spec: Value, expected: Value| {
        let mut ports = ports_of(service_ports, pod_spec);
        ports.sort();
        assert_eq!(json!(ports), expected);
    };
    let port = |name: &str, target: Value| json!({ "name": name, "protocol": "TCP", "targetPort": target });
    let app = |mut port: Value, protocol: &str| {
        port["appProtocol"] = protocol.into();
        port
    };
    let container =
        |name: &str, number: i32| json!({ "ports": [{ "name": name, "containerPort": number, "protocol": "TCP" }] });
    let endpoint = |name: &str, number: i32| json!({ "name": name, "protocol": "TCP", "port": number });
    let custom = "example.com/custom-protocol";
    check(
        json!([app(port("http", json!(80)), custom)]),
        json!({ "containers": [{ "ports": [] }] }),
        json!([app(endpoint("http", 80), custom)]),
    );
    check(
        json!([port("http", json!(80)), app(port("https", json!("https")), "https")]),
        json!({ "containers": [container("https", 443)] }),
        json!([endpoint("http", 80), app(endpoint("https", 443), "https")]),
    );
    let mut sidecar = container("http", 8080);
    sidecar["restartPolicy"] = "Always".into();
    check(
        json!([port("http", json!("http"))]),
        json!({ "containers": [container("http", 8090)], "initContainers": [sidecar] }),
        json!([endpoint("http", 8090)]),
    );
    check(
        json!([port("http-sidecar", json!(8080)), port("http", json!("http"))]),
        json!({ "containers": [container("http", 8090)], "initContainers": [container("http-sidecar", 8080)] }),
        json!([endpoint("http", 8090), endpoint("http-sidecar", 8080)]),
    );
    // A port whose name no container has is left out.
    check(
        json!([port("a", json!("a")), port("b", json!("b"))]),
        json!({ "containers": [container("b", 1)] }),
        json!([endpoint("b", 1)]),
    );
}

/// Upstream: `TestFindPort`.
#[test]
fn a_named_port_is_that_of_the_first_container_that_has_it() {
    let check = |containers: Value, init_containers: Value, target: Value, expected: Option<i32>| {
        let spec = json!({ "containers": containers, "initContainers": init_containers });
        let pod: Arc<Pod> = new_pod(1, true).set(&["spec"], spec).build();
        let port: ServicePort = serde_json::from_value(json!({ "protocol": "TCP", "targetPort": target })).unwrap();
        assert_eq!(find_port(&port, &pod.ports), expected);
    };
    let three = json!({ "ports": [
        { "name": "", "containerPort": 11, "protocol": "UDP" },
        { "name": "p", "containerPort": 22, "protocol": "TCP" },
        { "name": "q", "containerPort": 33, "protocol": "TCP" },
    ] });
    let one = |number: i32, protocol: &str| json!({ "ports": [{ "name": "a", "containerPort": number, "hostPort": -1, "protocol": protocol }] });
    check(json!([{}]), Value::Null, json!(93), Some(93));
    check(json!([three]), Value::Null, json!(93), Some(93));
    check(json!([{}]), Value::Null, json!("p"), None);
    check(json!([three]), Value::Null, json!("q"), Some(33));
    check(json!([{}, three]), Value::Null, json!("q"), Some(33));
    check(json!([{}, one(11, "snmp")]), Value::Null, json!("a"), None);
    check(json!([{}, one(11, "TCP")]), Value::Null, json!("a"), Some(11));
    check(json!([{}, one(-1, "TCP")]), Value::Null, json!("a"), Some(-1));
    let sidecar = |number| {
        let mut container = one(number, "TCP");
        container["restartPolicy"] = "Always".into();
        container
    };
    check(Value::Null, json!([sidecar(80)]), json!("a"), Some(80));
    check(Value::Null, json!([one(80, "TCP")]), json!("a"), None);
    check(json!([one(81, "TCP"), one(82, "TCP")]), json!([sidecar(80)]), json!("a"), Some(81));
}

/// The hashes are those of Go's dump of the structs, taken from upstream's own functions.
#[test]
fn ports_are_written_in_upstreams_order() {
    let port = |name: Option<&str>, number: Option<i32>, app: Option<&str>| EndpointPort {
        name: name.map(Text::new),
        protocol: name.map(|_| Text::new("TCP")),
        port: number,
        app_protocol: app.map(Text::new),
    };
    let http = port(Some("http"), Some(80), None);
    let odd = port(Some(""), Some(8080), Some("a\"b\nü"));
    let empty = port(None, None, None);
    // 55443…, ad866…, b6c4d….
    let expected = vec![odd.clone(), empty.clone(), http.clone()];
    for mixed in [[&http, &odd, &empty], [&empty, &http, &odd], [&odd, &empty, &http]] {
        assert_eq!(in_order(mixed.into_iter().cloned().collect()), expected);
    }
}

/// Upstream: `TestSupportedServiceAddressType`.
#[test]
fn address_types_are_the_families_or_those_of_the_ip() {
    use AddressType::{IPv4, IPv6};
    let check = |cluster_ip: Value, families: Value, expected: &[AddressType]| {
        let service: Arc<Service> =
            service("foo").set(&["spec", "clusterIP"], cluster_ip).set(&["spec", "ipFamilies"], families).build();
        assert_eq!(address_types(&service), expected);
    };
    check(json!("10.0.0.10"), Value::Null, &[IPv4]);
    check(json!("2000::1"), Value::Null, &[IPv6]);
    check(json!(""), json!(["IPv4"]), &[IPv4]);
    check(json!(""), json!(["IPv6"]), &[IPv6]);
    check(json!(""), json!(["IPv4", "IPv6"]), &[IPv4, IPv6]);
    check(json!(""), json!(["IPv6", "IPv4"]), &[IPv4, IPv6]);
    check(json!("None"), Value::Null, &[IPv4, IPv6]);
    check(json!("None"), json!(["IPv4", "IPv6"]), &[IPv4, IPv6]);
    check(json!("10.0.0.10"), json!(["IPv4", "IPv9"]), &[IPv4]);
}

/// Upstream: `TestSetEndpointSliceLabels`, `TestNewEndpointSlice`.
#[test]
fn a_slice_has_its_services_labels_and_the_reserved_ones() {
    let check = |slice: Value, service: ObjectBuilder, expected: Value, differ: bool| {
        let service: Arc<Service> = service.build();
        let slice: Arc<EndpointSlice> = object("discovery.k8s.io/v1", "EndpointSlice", "foo-1")
            .set(&["addressType"], "IPv4")
            .set(&["metadata", "labels"], slice)
            .build();
        assert_eq!(json!(slice_labels(&service)), expected);
        assert_eq!(labels_differ(&slice, &service), differ);
    };
    let with = |key: &str, value: &str| {
        let mut labels = own_labels();
        labels[key] = value.into();
        labels
    };
    let mut unheaded = own_labels();
    unheaded.as_object_mut().unwrap().remove("service.kubernetes.io/headless");
    let headed = || service("foo").set(&["spec", "clusterIP"], "1.1.1.1");
    check(Value::Null, headed(), unheaded.clone(), false);
    check(Value::Null, service("foo").label("foo", "bar"), with("foo", "bar"), true);
    check(Value::Null, service("foo").set(&["spec", "clusterIP"], "None"), own_labels(), false);
    check(Value::Null, headed().label("service.kubernetes.io/headless", ""), unheaded.clone(), false);
    check(json!({ "foo": "bar" }), service("foo"), own_labels(), true);
    check(json!({ "foo": "bar" }), service("foo").label("foo", "bar"), with("foo", "bar"), false);
    check(json!({ "foo": "bar" }), service("foo").label("foo", "baz"), with("foo", "baz"), true);
    check(json!({ "foo": "bar", "a": "b" }), service("foo").label("foo", "bar"), with("foo", "bar"), true);
    let reserved = service("foo").label("kubernetes.io/service-name", "bad").label("foo", "bar");
    check(with("foo", "bar"), reserved, with("foo", "bar"), false);
    check(json!({ "service.kubernetes.io/headless": "invalid" }), headed(), unheaded, false);
}
