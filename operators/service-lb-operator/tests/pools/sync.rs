//! The operator with pools as it is, against an apiserver in the test's process.

use serde_json::{Value, json};
use service_lb_operator::controller::ServiceLbOperator;
use service_lb_operator::objects::address_pool::POOLS_CLASS;
use service_lb_operator::objects::pooled_service::ADDRESS_ASSIGNED;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const FLAGS: [&str; 1] = ["--address-pools=kube-system/address-pools"];

fn config_map(pools: &[(&str, Value)]) -> ObjectBuilder {
    let data: serde_json::Map<String, Value> =
        pools.iter().map(|(name, pool)| ((*name).to_owned(), json!(pool.to_string()))).collect();
    object("v1", "ConfigMap", "address-pools").namespace("kube-system").set(&["data"], data)
}

fn two_addresses() -> ObjectBuilder {
    config_map(&[("small", json!({"addresses": ["192.0.2.1-192.0.2.2"]}))])
}

fn service(name: &str) -> ObjectBuilder {
    object("v1", "Service", name)
        .set(&["spec", "type"], "LoadBalancer")
        .set(&["spec", "loadBalancerClass"], POOLS_CLASS)
        .set(&["spec", "ipFamilies"], json!(["IPv4"]))
        .set(&["spec", "ports"], json!([{"protocol": "TCP", "port": 80}]))
}

fn start(server: &Server) -> Running {
    Running::start::<ServiceLbOperator>(server, &FLAGS)
}

/// The addresses of a Service, and the reason of its condition.
fn status(server: &Server, name: &str) -> String {
    let service = server.get("services", &format!("default/{name}")).unwrap_or_default();
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
    let addresses: Vec<&str> = ingress.iter().filter_map(|ingress| ingress["ip"].as_str()).collect();
    let conditions = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let assigned = conditions.iter().find(|condition| condition["type"] == ADDRESS_ASSIGNED);
    let reason = assigned.map(|condition| format!("{} {}", condition["status"], condition["reason"]).replace('"', ""));
    format!("{} {}", addresses.join(","), reason.unwrap_or_default()).trim().to_owned()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&two_addresses());
                for name in ["a", "b", "c"] {
                    server.add(&service(name));
                }
            }),
            Do(|server| server.delete("services", "default/a")),
            Do(|server| {
                server.expire_watches("configmaps");
                server.change("configmaps", "kube-system/address-pools", |config_map| {
                    config_map["data"]["more"] = json!(r#"{"addresses": ["2001:db8::1"]}"#);
                });
                server.add(&service("six").set(&["spec", "ipFamilies"], json!(["IPv6"])));
            }),
            Do(|server| {
                server.change("services", "default/b", |service| {
                    service["metadata"]["annotations"] =
                        json!({"service.operators.local/load-balancer-ips": "192.0.2.2"});
                });
            }),
        ];
        let server = survives_kills::<ServiceLbOperator>(&FLAGS, &life).await;
        assert_eq!(status(&server, "b"), "192.0.2.2 True Assigned");
        assert_eq!(status(&server, "c"), "192.0.2.1 True Assigned");
        assert_eq!(status(&server, "six"), "2001:db8::1 True Assigned");
        let writes = ["a", "b", "c", "c", "six"].map(|name| format!("patch services/status default/{name}"));
        assert_eq!(server.writes(), writes);
    });
}

#[test]
fn a_lost_answer_costs_no_address() {
    test(async {
        let server = Server::new();
        server.add(&two_addresses());
        server.on("patch", "services/status").lose().once();
        let running = start(&server);
        server.add(&service("a"));
        server.add(&service("b"));
        running.at_rest().await;
        assert_eq!(status(&server, "a"), "192.0.2.1 True Assigned");
        assert_eq!(status(&server, "b"), "192.0.2.2 True Assigned");
    });
}

#[test]
fn what_waits_is_told_once_and_gets_the_first_address_that_is_free() {
    test(async {
        let server = Server::new();
        server.add(&two_addresses());
        let running = start(&server);
        for name in ["a", "b", "c"] {
            server.add(&service(name));
            running.at_rest().await;
        }
        assert_eq!(status(&server, "c"), "False PoolExhausted");
        assert_eq!(
            server.events(),
            [
                "Normal AddressAssigned: Assigned 192.0.2.1 from the pool small",
                "Normal AddressAssigned: Assigned 192.0.2.2 from the pool small",
                "Warning AddressNotAssigned: Cannot assign an address: no address is free in small",
            ]
        );
        assert_eq!(running.now("/api/v1/namespaces/default/services/c"), ["no address (no address is free in small)"]);
        server.change("services", "default/b", |service| {
            service["spec"]["type"] = json!("ClusterIP");
            service["status"]["loadBalancer"] = json!({});
        });
        running.at_rest().await;
        assert_eq!(status(&server, "b"), "", "its condition goes with its address");
        assert_eq!(status(&server, "c"), "192.0.2.2 True Assigned");
    });
}

#[test]
fn a_service_that_moves_to_other_addresses_is_told_that_the_old_ones_are_released() {
    test(async {
        let server = Server::new();
        server.add(&two_addresses());
        server.add(&service("a"));
        let running = start_at_rest::<ServiceLbOperator>(&server, &FLAGS).await;
        server.change("configmaps", "kube-system/address-pools", |config_map| {
            config_map["data"]["small"] = json!(r#"{"addresses": ["198.51.100.1"]}"#);
        });
        running.at_rest().await;
        assert_eq!(status(&server, "a"), "198.51.100.1 True Assigned");
        // Time stands still here, and so the next event has the name of this one.
        assert_eq!(server.events()[1..], ["Warning AddressReleased: Released 192.0.2.1"]);
    });
}

#[test]
fn a_wrong_pool_is_told_and_its_services_keep_their_addresses() {
    test(async {
        let server = Server::new();
        server.add(&two_addresses());
        server.add(&service("a"));
        let running = start_at_rest::<ServiceLbOperator>(&server, &FLAGS).await;
        server.change("configmaps", "kube-system/address-pools", |config_map| {
            config_map["data"]["small"] = json!("192.0.2.1");
        });
        running.at_rest().await;
        assert_eq!(status(&server, "a"), "192.0.2.1 True Assigned");
        let events = server.events();
        let told = events.last().map(String::as_str).unwrap_or_default();
        assert!(told.starts_with("Warning InvalidAddressPool: The pool small is left out: "), "{events:?}");
        assert_eq!(server.writes().len(), 1);
    });
}

#[test]
fn a_pool_for_some_namespaces_is_known_once_these_are() {
    test(async {
        let server = Server::new();
        let selecting = json!({"addresses": ["192.0.2.1"], "namespaceSelector": {"matchLabels": {"team": "a"}}});
        server.add(&config_map(&[("team", selecting)]));
        server.add(&object("v1", "Namespace", "default").namespace(""));
        server.add(&service("web"));
        let running = start_at_rest::<ServiceLbOperator>(&server, &FLAGS).await;
        assert_eq!(status(&server, "web"), "False NoPool");
        server.change("namespaces", "default", |namespace| {
            namespace["metadata"]["labels"] = json!({"team": "a"});
        });
        running.at_rest().await;
        assert_eq!(status(&server, "web"), "192.0.2.1 True Assigned");
    });
}
