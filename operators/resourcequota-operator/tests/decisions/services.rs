//! Services. Upstream: `TestServiceEvaluatorUsage`, `pkg/quota/v1/evaluator/core/services_test.go`.

use resourcequota_operator::objects::Service;
use resourcequota_operator::observe::Objects;
use serde_json::{Value, json};
use shared::testing::object;

use crate::fixtures::{facts, scope, used};

const NAMES: &str = "services services.nodeports services.loadbalancers count/services";

fn services(specs: &[Value]) -> Objects {
    let service = |spec: &Value| facts::<Service>(&object("v1", "Service", "s").set(&["spec"], spec.clone()));
    Objects::Services(specs.iter().map(service).collect())
}

#[track_caller]
fn check(spec: &Value, node_ports: u32, load_balancers: u32) {
    let expected =
        format!("count/services=1 services=1 services.loadbalancers={load_balancers} services.nodeports={node_ports}");
    assert_eq!(used(&services(std::slice::from_ref(spec)), NAMES, &[]), expected, "{spec}");
}

#[test]
fn a_service_counts_by_its_type() {
    let two = json!([{ "port": 27443 }, { "port": 27444 }]);
    // "loadbalancer", "loadbalancer_ports", "clusterip", "nodeports", "multi-nodeports"
    check(&json!({ "type": "LoadBalancer" }), 0, 1);
    check(&json!({ "type": "LoadBalancer", "ports": [{ "port": 27443 }] }), 1, 1);
    check(&json!({ "type": "LoadBalancer", "ports": two }), 2, 1);
    check(&json!({ "type": "ClusterIP" }), 0, 0);
    check(&json!({ "type": "ClusterIP", "ports": two }), 0, 0);
    check(&json!({ "type": "NodePort", "ports": [{ "port": 27443 }] }), 1, 0);
    check(&json!({ "type": "NodePort", "ports": two }), 2, 0);
    check(&json!({ "type": "ExternalName", "ports": null }), 0, 0);
    // "not allocating nodeports", "one explicit"
    check(&json!({ "type": "LoadBalancer", "ports": two, "allocateLoadBalancerNodePorts": false }), 0, 1);
    let explicit = json!([{ "port": 1, "nodePort": 32001 }, { "port": 2 }]);
    check(&json!({ "type": "LoadBalancer", "ports": explicit, "allocateLoadBalancerNodePorts": false }), 1, 1);
    check(&json!({ "type": "LoadBalancer", "ports": explicit, "allocateLoadBalancerNodePorts": true }), 2, 1);
}

#[test]
fn services_are_summed_up_and_in_no_scope() {
    let all = services(&[json!({ "type": "NodePort", "ports": [{ "port": 1 }] }), json!({ "type": "LoadBalancer" })]);
    assert_eq!(used(&all, "services services.nodeports", &[]), "services=2 services.nodeports=1");
    assert_eq!(used(&all, "services", &[scope("BestEffort", "Exists", &[])]), "services=0");
    let none = services(&[]);
    assert_eq!(used(&none, "services", &[]), "services=0");
    assert_eq!(used(&Objects::Number(3), "secrets count/secrets", &[]), "count/secrets=3 secrets=3");
    assert_eq!(used(&Objects::Number(3), "secrets", &[scope("BestEffort", "Exists", &[])]), "secrets=0");
}
