//! What Services ask for.

use std::net::IpAddr;

use serde_json::{Value, json};
use service_lb_operator::objects::pooled_service::{
    ADDRESS_ASSIGNED, PooledService, SHARING_KEY, User, WANTED_ADDRESSES, WANTED_POOL,
};
use shared::api::cidr::Family;

fn service(annotations: &Value, spec: &Value) -> PooledService {
    serde_json::from_value(json!({
        "metadata": {"namespace": "shop", "name": "web", "annotations": annotations},
        "spec": spec,
    }))
    .unwrap()
}

fn fault(annotations: &Value, spec: &Value) -> String {
    service(annotations, spec).request.unwrap_err()
}

#[test]
fn a_service_asks_for_its_families_and_for_addresses_of_them() {
    let asks = |annotations: &Value, spec: &Value| service(annotations, spec).request.unwrap();
    let plain = asks(&json!({}), &json!({"ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"}));
    assert_eq!((&*plain.families, plain.is_one_enough, plain.wanted.len()), (&[Family::V6][..], false, 0));
    let spec = json!({"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack",
                      "loadBalancerIP": "192.0.2.7"});
    let dual = asks(&json!({WANTED_POOL: "a"}), &spec);
    assert!(dual.is_one_enough && dual.wanted.contains(&"192.0.2.7".parse().unwrap()));
    assert_eq!(dual.pool.as_deref(), Some("a"));
    let both = asks(&json!({WANTED_ADDRESSES: "2001:db8::1, 192.0.2.7"}), &json!({"ipFamilies": ["IPv4", "IPv6"]}));
    assert_eq!(both.wanted.len(), 2);
}

#[test]
fn a_wish_that_cannot_be_read_is_told() {
    let one = json!({"ipFamilies": ["IPv4"]});
    let with_address = |address: &str| json!({"ipFamilies": ["IPv4"], "loadBalancerIP": address});
    let wanted = |addresses: &str| json!({WANTED_ADDRESSES: addresses});
    let none = json!({});
    let cases = [
        (fault(&none, &json!({})), "spec.ipFamilies is empty"),
        (fault(&none, &with_address("web")), r#"spec.loadBalancerIP: "web" is no address"#),
        (fault(&none, &with_address("2001:db8::1")), "the Service has no family IPv6 for the address 2001:db8::1"),
        (fault(&wanted("192.0.2.1,192.0.2.2"), &one), "two addresses of the family IPv4 are wanted"),
        (
            fault(&wanted("192.0.2.1"), &with_address("192.0.2.1")),
            "both spec.loadBalancerIP and service.operators.local/load-balancer-ips are set",
        ),
        (fault(&wanted(""), &one), r#"service.operators.local/load-balancer-ips: "" is no address"#),
    ];
    for (told, expected) in cases {
        assert_eq!(told, expected);
    }
}

/// MetalLB: `TestAssignment`, `internal/allocator/allocator_test.go`.
#[test]
fn services_share_an_address_with_the_same_key_backend_and_other_ports() {
    let user = |key: &str, policy: &str, app: &str, ports: &Value| {
        service(
            &json!({SHARING_KEY: key}),
            &json!({"externalTrafficPolicy": policy, "selector": {"app": app}, "ports": ports}),
        )
        .user
    };
    let (http, https) = (json!([{"port": 80}]), json!([{"port": 443, "protocol": "TCP"}]));
    let web = user("k", "Cluster", "web", &http);
    let shares = |other: &User| web.may_share_with(other) && other.may_share_with(&web);
    assert!(shares(&user("k", "Cluster", "shop", &https)), "Cluster needs no common backend");
    assert!(shares(&user("k", "Cluster", "web", &json!([{"port": 80, "protocol": "UDP"}]))));
    assert!(!shares(&user("k", "Cluster", "shop", &json!([{"port": 443}, {"port": 80}]))), "a common port");
    assert!(!shares(&user("other", "Cluster", "web", &https)));
    assert!(!shares(&user("", "Cluster", "web", &https)));
    assert!(!user("", "Cluster", "web", &http).may_share_with(&user("", "Cluster", "web", &https)));
    assert!(!shares(&user("k", "Local", "web", &https)), "one is Local");
    let local = user("k", "Local", "web", &http);
    assert!(local.may_share_with(&user("k", "Local", "web", &https)));
    assert!(!local.may_share_with(&user("k", "Local", "shop", &https)), "Local with another backend");
}

#[test]
fn the_addresses_and_the_condition_are_those_of_the_status() {
    let service: PooledService = serde_json::from_value(json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": "x"},
        "status": {
            "loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}, {"hostname": "a.example"}]},
            "conditions": [{"type": ADDRESS_ASSIGNED, "status": "True", "reason": "Assigned"}],
        },
    }))
    .unwrap();
    assert_eq!(service.addresses.as_ref(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
    assert!(service.has_other_ingress && service.is_load_balancer && service.assigned.is_some());
}
