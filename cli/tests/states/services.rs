//! Services.

use cli::cause::State::{AtRest, InProgress, Stuck};
use serde_json::{Value, json};

use super::scene::{Row, evidence, object, pod, pod_in, row, says, with};

fn service(rest: &Value) -> Value {
    let base = json!({ "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] } });
    with(object("v1", "Service", "web", &base), rest)
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
            "web: it is a name for `db.example` (ExternalName), and has no endpoints",
        ),
        row(evidence(vec![service(&none)]), Stuck, "web: it has no selector, and nobody has written endpoints for it"),
        row(
            evidence(vec![service(&none), slice(1, 0)]),
            AtRest,
            "web: it has no selector; somebody wrote 1 endpoint for it",
        ),
        row(evidence(vec![service(&json!({}))]), Stuck, "web: it leads nowhere: no pod has the labels app=web"),
        row(
            evidence(vec![service(&json!({})), mistyped]),
            Stuck,
            "web: it leads nowhere: no pod has the labels app=web; there is pod/web-a with app=wbe",
        ),
        row(
            evidence(vec![service(&json!({})), pod_in(&image, &json!({})), slice(0, 1)]),
            Stuck,
            "web: it leads nowhere: none of its 1 pod is ready: web-a: image `web:2` cannot be pulled (ErrImagePull)",
        ),
        row(
            evidence(vec![service(&named), ready()]),
            Stuck,
            "web: it leads nowhere: no container of pod/web-a has a port called `http`",
        ),
        row(
            evidence(vec![service(&json!({})), ready()]),
            InProgress,
            "web: 1 pod ready, and its EndpointSlices have 0 of them",
        ),
        row(
            says(evidence(vec![service(&json!({})), ready()]), "endpointslice-operator", ("services", "web"), |said| {
                said.caches[0].unreadable.insert("team/web-a".to_owned(), "unknown phase".to_owned());
            }),
            Stuck,
            "web: endpointslice-operator cannot read pods team/web-a, and acts on an older state: unknown phase",
        ),
        row(evidence(vec![service(&json!({})), ready(), slice(1, 0), v6]), AtRest, "web: 1 of 1 endpoint ready"),
    ]
}
