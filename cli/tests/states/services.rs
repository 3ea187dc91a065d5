//! Services.

use cli::cause::State::{AtRest, InProgress, Stuck};
use serde_json::{Value, json};

use super::scene::{Row, event, evidence, fails, object, pod, pod_in, row, says, with};

fn service(rest: &Value) -> Value {
    let base = json!({ "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] } });
    with(object("v1", "Service", "web", &base), rest)
}

/// A service that is to have a load balancer.
fn balanced(rest: &Value) -> Value {
    with(service(&json!({ "spec": { "type": "LoadBalancer" } })), rest)
}

/// A slice of the service with so many ready endpoints and so many others.
fn slice(ready: usize, others: usize) -> Value {
    let endpoint = |ready: bool| json!({ "conditions": { "ready": ready } });
    let all: Vec<Value> =
        std::iter::repeat_n(endpoint(true), ready).chain(std::iter::repeat_n(endpoint(false), others)).collect();
    let rest = json!({
        "metadata": { "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4",
        "endpoints": all,
    });
    object("discovery.k8s.io/v1", "EndpointSlice", "web-x", &rest)
}

pub(crate) fn rows() -> Vec<Row> {
    let ready = || pod("web-a", &json!({}));
    let mistyped = pod("web-a", &json!({ "metadata": { "labels": { "app": "wbe" } } }));
    let image = json!({ "state": { "waiting": { "reason": "ErrImagePull" } } });
    let none = json!({ "spec": { "selector": null } });
    let named = json!({ "spec": { "ports": [{ "port": 80, "targetPort": "http" }] } });
    let mut v6 = slice(1, 0);
    v6["addressType"] = json!("IPv6");
    v6["metadata"]["uid"] = json!("web-y");
    vec![
        row(
            evidence(vec![service(&json!({ "spec": { "type": "ExternalName", "externalName": "db.example" } }))]),
            AtRest,
            "web: alias for `db.example` (ExternalName); has no endpoints",
        ),
        row(evidence(vec![service(&none)]), Stuck, "web: no selector and no endpoints"),
        row(
            evidence(vec![service(&none), slice(1, 0)]),
            AtRest,
            "web: no selector; 1 endpoint written by another client",
        ),
        row(evidence(vec![service(&json!({}))]), Stuck, "web: no endpoints: no pod matches selector app=web"),
        row(
            evidence(vec![service(&json!({})), mistyped]),
            Stuck,
            "web: no endpoints: no pod matches selector app=web; closest match: pod/web-a with app=wbe",
        ),
        row(
            evidence(vec![service(&json!({})), pod_in(&image, &json!({})), slice(0, 1)]),
            Stuck,
            "web: no ready endpoints: 0 of 1 pod ready: web-a: cannot pull image `web:2` (ErrImagePull)",
        ),
        row(
            evidence(vec![service(&named), ready()]),
            Stuck,
            "web: no endpoints: no container of pod/web-a has a port named `http`",
        ),
        row(evidence(vec![service(&json!({})), ready()]), InProgress, "web: 1 pod ready, but 0 in its EndpointSlices"),
        row(
            says(evidence(vec![service(&json!({})), ready()]), "endpointslice-operator", ("services", "web"), |said| {
                said.caches[0].unreadable.insert("team/web-a".to_owned(), "unknown phase".to_owned());
            }),
            Stuck,
            "web: endpointslice-operator cannot decode pods team/web-a and uses an older state: unknown phase",
        ),
        row(evidence(vec![service(&json!({})), ready(), slice(1, 0), v6]), AtRest, "web: 1 of 1 endpoint ready"),
    ]
}

pub(crate) fn balancers() -> Vec<Row> {
    let ready = || pod("web-a", &json!({}));
    vec![
        row(
            evidence(vec![balanced(&json!({})), ready(), slice(1, 0)]),
            Stuck,
            "web: no address of a load balancer: no reason is known",
        ),
        row(
            says(
                evidence(vec![
                    balanced(&json!({ "spec": { "loadBalancerClass": "example.com/lb" } })),
                    ready(),
                    slice(1, 0),
                    event("web", "SyncLoadBalancerFailed", "Error syncing load balancer: no subnet", -9),
                ]),
                "service-lb-operator",
                ("services", "web"),
                |said| {
                    let nothing = "nothing (it wants no load balancer of the provider)";
                    nothing.clone_into(&mut said.keys[0].now[0].text);
                    said.keys[0].now[0].reason = json!("notWanted");
                },
            ),
            Stuck,
            "web: no address of a load balancer of class `example.com/lb`: Error syncing load balancer: no subnet",
        ),
        row(
            says(
                evidence(vec![
                    balanced(&json!({})),
                    ready(),
                    slice(1, 0),
                    event("web", "SyncLoadBalancerFailed", "Error syncing load balancer: no subnet", -900),
                ]),
                "service-lb-operator",
                ("services", "web"),
                |said| fails(said, "ensure the load balancer (it has changed)", "quota exceeded"),
            ),
            Stuck,
            "web: no address of a load balancer: quota exceeded",
        ),
        row(
            says(
                evidence(vec![balanced(&json!({})), ready(), slice(1, 0)]),
                "service-lb-operator",
                ("services", "web"),
                |said| {
                    let waits = "wait (the cloud provider aws has no load balancers)";
                    waits.clone_into(&mut said.keys[0].now[0].text);
                },
            ),
            Stuck,
            "web: no address of a load balancer: wait (the cloud provider aws has no load balancers)",
        ),
        row(
            evidence(vec![
                balanced(&json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } } })),
                ready(),
                slice(1, 1),
            ]),
            AtRest,
            "web: 1 of 2 endpoints ready",
        ),
    ]
}
