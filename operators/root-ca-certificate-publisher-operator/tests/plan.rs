//! The plan for a namespace's ConfigMap: upstream's cases, and the properties of every ConfigMap.

use std::sync::Arc;

use proptest::prelude::*;
use root_ca_certificate_publisher_operator::objects::{ConfigMap, DESCRIPTION, DESCRIPTION_ANNOTATION};
use root_ca_certificate_publisher_operator::observe::Observed;
use root_ca_certificate_publisher_operator::plan::{Plan, plan};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::testing::{ObjectBuilder, object};

const CA: &str = "fake-root-ca";

fn config_map(data: &Value) -> ObjectBuilder {
    object("v1", "ConfigMap", "kube-root-ca.crt").set(&["data"], data.clone())
}

fn published() -> ObjectBuilder {
    config_map(&json!({ "ca.crt": CA })).annotation(DESCRIPTION_ANNOTATION, DESCRIPTION)
}

fn observed(config_map: Option<&ObjectBuilder>) -> Observed {
    let live = config_map.map(|config_map| config_map.json().clone());
    let config_map = config_map.map(ObjectBuilder::build);
    Observed { namespace: Key::new("", "ns"), is_active: true, ca: Some(Text::new(CA)), config_map, live }
}

#[track_caller]
fn check(config_map: Option<&ObjectBuilder>, expected: &str) {
    assert_eq!(plan(&observed(config_map)).to_string(), expected);
}

/// The update of this ConfigMap, if it needs one.
fn updated(config_map: &ObjectBuilder) -> Option<Value> {
    match plan(&observed(Some(config_map))) {
        Plan::Update { fault: _, body } => Some(body),
        Plan::Nothing(_) | Plan::Create(_) => None,
    }
}

/// Upstream: `TestConfigMapCreation`.
#[test]
fn a_namespace_has_the_ca_and_nothing_but_the_ca() {
    // "create new namespace", "delete ca configmap"
    check(None, "create kube-root-ca.crt (not there)");
    // "delete other configmap", "update with other configmap": it is as it should be.
    check(Some(&published()), "nothing (kube-root-ca.crt is right)");
    // "update ca configmap with adding field"
    let other_data = "update kube-root-ca.crt (other data)";
    check(Some(&published().set(&["data", "test"], "test")), other_data);
    // "update ca configmap with modifying field"
    check(Some(&published().set(&["data", "ca.crt"], "abc")), other_data);
    check(Some(&published().set(&["data"], Value::Null)), other_data);
    check(Some(&published().set(&["data"], json!({ "other": CA }))), other_data);
    // Not looked at, as upstream.
    check(Some(&published().set(&["binaryData"], json!({ "b": "AA==" }))), "nothing (kube-root-ca.crt is right)");
}

#[test]
fn nothing_is_done_about_a_namespace_that_goes_or_without_a_ca() {
    // "update namespace with terminating state"
    let goes = Observed { is_active: false, ..observed(None) };
    assert_eq!(plan(&goes).to_string(), "nothing (not active)");
    let nameless = Observed { ca: None, ..observed(None) };
    assert_eq!(plan(&nameless).to_string(), "nothing (no CA to publish; set --root-ca-file)");
    let kept = Observed { ca: None, ..observed(Some(&published())) };
    assert_eq!(plan(&kept).to_string(), "nothing (no CA to publish; set --root-ca-file)");
}

/// Upstream: `configMapUpdated`, which does not ask about the namespace. Its pods may have long to end, and their volumes
/// are the ConfigMap.
#[test]
fn a_namespace_that_goes_keeps_the_right_ca_until_that_goes_too() {
    let goes =
        |config_map: &ObjectBuilder| plan(&Observed { is_active: false, ..observed(Some(config_map)) }).to_string();
    assert_eq!(goes(&published()), "nothing (kube-root-ca.crt is right)");
    assert_eq!(goes(&published().set(&["data", "ca.crt"], "abc")), "update kube-root-ca.crt (other data)");
    assert_eq!(goes(&config_map(&json!({ "ca.crt": CA }))), "update kube-root-ca.crt (no description)");
}

#[test]
fn a_new_one_is_upstreams() {
    let Plan::Create(body) = plan(&observed(None)) else { unreachable!("there is none") };
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when \
                    using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage \
                    is guaranteed across distributions of Kubernetes clusters.",
            },
        },
        "data": { "ca.crt": CA },
    });
    assert_eq!(body, expected);
}

/// Upstream: `TestConfigMapUpdateNoHotLoop`.
#[test]
fn a_description_is_added_and_never_changed() {
    // "update-configmap-annotation"
    let plain = config_map(&json!({ "ca.crt": CA }));
    for without in [plain.clone(), plain.clone().annotation(DESCRIPTION_ANNOTATION, ""), plain.annotation("other", "x")]
    {
        check(Some(&without), "update kube-root-ca.crt (no description)");
        let body = updated(&without).unwrap();
        assert_eq!(body["metadata"]["annotations"][DESCRIPTION_ANNOTATION], DESCRIPTION);
        assert_eq!(body["data"], json!({ "ca.crt": CA }));
    }
    // "no-update-configmap-if-annotation-present-and-equal"
    assert_eq!(updated(&published()), None);
    // "no-update-configmap-if-annotation-present-and-different"
    let different = published().annotation(DESCRIPTION_ANNOTATION, "different");
    check(Some(&different), "nothing (kube-root-ca.crt is right)");
    assert_eq!(updated(&different), None);
}

#[test]
fn what_the_apiserver_has_is_decided_on_where_the_cache_is_behind() {
    let spoilt = published().set(&["data", "ca.crt"], "abc");
    let behind = |live: Option<Value>| plan(&Observed { live, ..observed(Some(&spoilt)) }).to_string();
    assert_eq!(behind(Some(published().json().clone())), "nothing (kube-root-ca.crt is right)");
    assert_eq!(behind(None), "nothing (kube-root-ca.crt was deleted)");
}

#[test]
fn what_is_not_ours_stays() {
    let others = published()
        .set(&["data"], json!({ "ca.crt": "abc", "more": "x" }))
        .set(&["binaryData"], json!({ "b": "AA==" }))
        .set(&["notKnownYet"], json!({ "x": 1 }))
        .label("a", "b")
        .annotation("c", "d");
    let mut expected = others.json().clone();
    expected["data"] = json!({ "ca.crt": CA });
    expected["metadata"]["annotations"][DESCRIPTION_ANNOTATION] = DESCRIPTION.into();
    assert_eq!(updated(&others), Some(expected));
}

#[test]
fn a_thousand_namespaces_share_one_text() {
    let (one, other): (Arc<ConfigMap>, Arc<ConfigMap>) = (published().build(), published().namespace("b").build());
    let (one, other) = (one.ca.clone().unwrap(), other.ca.clone().unwrap());
    assert!(std::ptr::eq(one.as_str(), other.as_str()));
}

fn any_config_map() -> impl Strategy<Value = ObjectBuilder> {
    let text = || prop_oneof![Just(CA.to_owned()), Just(String::new()), "[a-z]{1,3}"];
    let key = || prop_oneof![Just("ca.crt".to_owned()), "[a-z]{1,3}"];
    let data = proptest::option::of(proptest::collection::btree_map(key(), text(), 0..3));
    (data, proptest::option::of(text()), any::<bool>()).prop_map(|(data, description, labelled)| {
        let mut built = config_map(&json!(data));
        if let Some(description) = description {
            built = built.annotation(DESCRIPTION_ANNOTATION, &description);
        }
        if labelled { built.label("a", "b") } else { built }
    })
}

proptest! {
    #[test]
    fn after_an_update_there_is_nothing_left_to_plan(config_map in any_config_map()) {
        let update = updated(&config_map);
        prop_assert_eq!(observed(Some(&config_map)).fault().is_some(), update.is_some());
        if let Some(body) = update {
            let read: Arc<ConfigMap> = Arc::new(serde_json::from_value(body.clone()).unwrap());
            let again = Observed { config_map: Some(read), live: Some(body.clone()), ..observed(None) };
            let is_right = matches!(plan(&again), Plan::Nothing(_));
            prop_assert!(is_right, "{body}");
            prop_assert_eq!(&body["metadata"]["resourceVersion"], &config_map.json()["metadata"]["resourceVersion"]);
        }
    }
}
