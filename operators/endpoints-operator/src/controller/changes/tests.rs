use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use shared::api::object::Key;
use shared::controllers::endpoints::changes::service_changed;
use shared::testing::{ObjectBuilder, object, pod, store};

use super::*;
use crate::objects::{MANAGED_BY, Pod, Service, labels};

fn service(name: &str) -> ObjectBuilder {
    object("v1", "Service", name).set(&["spec", "selector"], json!({ "app": "web" }))
}

fn endpoints(name: &str) -> Arc<Endpoints> {
    object("v1", "Endpoints", name).label(labels::MANAGED_BY, MANAGED_BY).build()
}

fn caches() -> Caches {
    let (caches, _) = Caches::new();
    let name = service("name").set(&["spec", "type"], "ExternalName");
    for service in [service("web"), name, object("v1", "Service", "custom")] {
        store(&caches.service_pods.services, &service.build());
    }
    caches
}

/// Upstream: `TestEndpointsDeletionEvents`.
#[test]
fn endpoints_that_go_concern_the_service_that_needs_them() {
    let caches = caches();
    let row = |name: &str, expected: bool| {
        let endpoints = endpoints(name);
        let woken = vec![Effect::Enqueue(Key::new("default", name), Cause::Event)];
        let expected = if expected { woken } else { Vec::new() };
        assert_eq!(caches.endpoints_changed(Change::Deleted(&endpoints)), expected, "{name}");
        assert!(caches.endpoints_changed(Change::Added(&endpoints)).is_empty());
        assert!(caches.endpoints_changed(Change::Updated { old: &endpoints, new: &endpoints }).is_empty());
    };
    row("web", true);
    row("name", false);
    row("custom", false);
    row("gone", false);
}

/// All else that a pod's change concerns is the same for all who list pods.
#[test]
fn a_pod_concerns_the_services_that_select_it() {
    let caches = caches();
    let pod = |app: &str| -> Arc<Pod> { pod("a").label("app", app).set(&["status", "podIP"], "10.0.0.1").build() };
    let woken = |pod: Arc<Pod>| caches.service_pods.pod_changed(Change::Added(&pod), Duration::ZERO).len();
    assert_eq!([woken(pod("web")), woken(pod("db"))], [2, 0], "also the one that is but another name");
}

#[test]
fn a_service_is_looked_at_when_it_asks_for_something_else() {
    let woken = |field: &str, value: serde_json::Value| {
        let old: Arc<Service> = service("web").build();
        let new: Arc<Service> = service("web").set(&["spec", field], value).build();
        service_changed(Change::Updated { old: &old, new: &new }).len()
    };
    assert_eq!(woken("trafficDistribution", json!("PreferClose")), 0);
    assert_eq!(woken("ipFamilies", json!(["IPv6"])), 1);
    assert_eq!(woken("ports", json!([{ "port": 80 }])), 1);
    assert_eq!(woken("publishNotReadyAddresses", json!(true)), 1);
    assert_eq!(woken("clusterIP", json!("10.0.0.1")), 1);
    assert_eq!(woken("type", json!("ExternalName")), 1);
}
