use std::sync::Arc;

use serde_json::json;
use shared::api::object::Key;
use shared::testing::{ObjectBuilder, object, uid};

use super::*;
use crate::objects::{MANAGED_BY, labels};

fn service(selector: bool) -> Arc<Service> {
    let spec = if selector { json!({ "selector": { "app": "web" } }) } else { json!({ "selector": {} }) };
    object("v1", "Service", "web").set(&["spec"], spec).build()
}

fn endpoints() -> ObjectBuilder {
    object("v1", "Endpoints", "web").set(&["subsets"], json!([{ "addresses": [{ "ip": "10.0.0.1" }] }]))
}

fn lock() -> ObjectBuilder {
    endpoints().annotation("control-plane.alpha.kubernetes.io/leader", "{}")
}

fn slice() -> ObjectBuilder {
    let slice = object("discovery.k8s.io/v1", "EndpointSlice", "web-x").set(&["addressType"], "IPv4");
    slice.label(labels::MANAGED_BY, MANAGED_BY).label(labels::SERVICE_NAME, "web")
}

fn web() -> Key {
    Key::new("default", "web")
}

#[test]
fn a_service_matters_while_it_has_no_selector() {
    let (with, without) = (service(true), service(false));
    let edit = || vec![Effect::Enqueue(web(), Cause::Edit)];
    let check = |change: Change<'_, Service>, expected: Vec<Effect>| assert_eq!(service_changed(change), expected);
    check(Change::Added(&without), edit());
    check(Change::Added(&with), Vec::new());
    check(Change::Updated { old: &with, new: &without }, edit());
    check(Change::Updated { old: &without, new: &with }, edit());
    check(Change::Updated { old: &without, new: &without }, Vec::new());
    check(Change::Deleted(&without), vec![Effect::Enqueue(web(), Cause::Event)]);
    check(Change::Deleted(&with), Vec::new());
}

/// Upstream: `TestShouldMirror`.
#[test]
fn endpoints_matter_unless_they_are_to_be_skipped_or_a_lock() {
    let row = |endpoints: ObjectBuilder, expected: bool| {
        let endpoints: Arc<Endpoints> = endpoints.build();
        assert_eq!(endpoints.is_meant(), expected);
        assert_eq!(endpoints_changed(Change::Added(&endpoints)).len(), usize::from(expected));
        assert_eq!(endpoints_changed(Change::Deleted(&endpoints)).len(), usize::from(expected));
    };
    row(endpoints(), true);
    row(endpoints().label(labels::SKIP_MIRROR, "true"), false);
    row(endpoints().label(labels::SKIP_MIRROR, "invalid"), true);
    row(endpoints().annotation("control-plane.alpha.kubernetes.io/leader", ""), false);
}

#[test]
fn endpoints_are_looked_at_when_they_ask_for_something_else() {
    let woken = |old: ObjectBuilder, new: ObjectBuilder| {
        endpoints_changed(Change::Updated { old: &old.build(), new: &new.build() }).len()
    };
    let last_change = "endpoints.kubernetes.io/last-change-trigger-time";
    assert_eq!(woken(endpoints(), endpoints().set(&["metadata", "resourceVersion"], "2")), 0);
    assert_eq!(woken(endpoints(), endpoints().annotation(last_change, "2026-01-01T00:00:00Z")), 0);
    assert_eq!(woken(endpoints(), endpoints().annotation("a", "b")), 1);
    assert_eq!(woken(endpoints(), endpoints().label("a", "b")), 1);
    assert_eq!(woken(endpoints(), endpoints().terminating()), 1);
    assert_eq!(woken(endpoints(), endpoints().uid_of("another")), 1);
    assert_eq!(woken(endpoints(), endpoints().set(&["subsets"], json!(null))), 1);
    assert_eq!([woken(endpoints(), lock()), woken(lock(), endpoints())], [1, 1]);
    assert_eq!(woken(lock(), lock().annotation("renewed", "now")), 0);
}

#[test]
fn a_slice_that_others_change_wakes_its_key_and_own_writes_do_not() {
    let (caches, _) = Caches::new();
    let (old, new): (Arc<EndpointSlice>, Arc<EndpointSlice>) = (slice().build(), slice().generation(2).build());
    let delay = Duration::from_secs(2);
    let effects = |change: Change<'_, EndpointSlice>| caches.endpoint_slice_changed(change, delay);
    let woken = vec![Effect::EnqueueAfter(web(), delay, SLICE_CHANGES)];
    assert_eq!(effects(Change::Added(&old)), woken);
    assert_eq!(effects(Change::Deleted(&old)), woken);
    caches.tracker.wrote(&web(), uid("web-x"), 1);
    assert!(effects(Change::Added(&old)).is_empty());
    assert_eq!(effects(Change::Updated { old: &old, new: &new }), woken);
    caches.tracker.wrote(&web(), uid("web-x"), 2);
    assert!(effects(Change::Updated { old: &old, new: &new }).is_empty());
    // Somebody gives it to another Service.
    let other: Arc<EndpointSlice> = slice().label(labels::SERVICE_NAME, "db").build();
    let both = vec![Effect::EnqueueAfter(Key::new("default", "db"), delay, SLICE_CHANGES), woken[0].clone()];
    assert_eq!(effects(Change::Updated { old: &old, new: &other }), both);
    let nameless: Arc<EndpointSlice> = slice().label(labels::SERVICE_NAME, "").build();
    assert!(effects(Change::Added(&nameless)).is_empty());
    caches.tracker.deleted(&web(), uid("web-x"));
    assert!(effects(Change::Deleted(&new)).is_empty());
}
