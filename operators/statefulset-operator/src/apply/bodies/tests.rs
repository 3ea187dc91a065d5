use serde_json::{Value, json};
use shared::api::object::{Key, ResourceVersion};
use shared::api::owner::Owner;
use shared::api::resource::PODS;
use shared::testing::{object, uid};

use super::*;
use crate::objects::STATEFUL_SETS;

fn set(spec: &Value) -> StatefulSet {
    let json = object("apps/v1", "StatefulSet", "web").set(&["spec"], spec.clone());
    serde_json::from_str(&json.json().to_string()).unwrap()
}

fn spec() -> Value {
    let pod = json!({
        "metadata": { "name": "dropped", "labels": { "app": "web" }, "annotations": { "a": "b" }, "finalizers": ["f"] },
        "spec": {
            "containers": [], "hostname": "other", "subdomain": "other", "notKnownYet": { "x": 1.5 },
            "volumes": [{ "name": "data", "emptyDir": {} }, { "name": "scratch", "emptyDir": {} }],
        },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": "data", "labels": { "tier": "db", "app": "x" }, "annotations": { "key": "value" } },
        "spec": { "accessModes": ["ReadWriteOnce"], "notKnownYet": 1 }, "status": { "phase": "Pending" },
    });
    json!({
        "replicas": 3, "selector": { "matchLabels": { "app": "web" } }, "serviceName": "db", "template": pod,
        "volumeClaimTemplates": [claim],
    })
}

fn sent(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn body(spec: &Value) -> Value {
    let set = set(spec);
    sent(&pod_body(&set, &set.spec.template, 1, "web-5d4f").unwrap())
}

/// Upstream: `TestUpdateIdentity`, `TestUpdateStorage` and `TestNewPodControllerRef`.
#[test]
fn a_pod_has_the_template_its_identity_and_its_claims() {
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": uid("web"),
        "controller": true, "blockOwnerDeletion": true }]);
    let labels = json!({
        "app": "web", "statefulset.kubernetes.io/pod-name": "web-1", "apps.kubernetes.io/pod-index": "1",
        "controller-revision-hash": "web-5d4f",
    });
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-1", "generateName": "web-", "namespace": "default", "labels": labels,
            "annotations": { "a": "b" }, "finalizers": ["f"], "ownerReferences": owner,
        },
        "spec": {
            "containers": [], "hostname": "web-1", "subdomain": "db", "notKnownYet": { "x": 1.5 },
            "volumes": [
                { "name": "data", "persistentVolumeClaim": { "claimName": "data-web-1" } },
                { "name": "scratch", "emptyDir": {} },
            ],
        },
    });
    assert_eq!(body(&spec()), expected);
}

#[test]
fn a_pod_has_a_subdomain_only_of_a_service() {
    let mut spec = spec();
    spec["serviceName"] = "".into();
    assert_eq!(body(&spec)["spec"].get("subdomain"), None);
}

#[test]
fn volumes_stay_where_no_claims_are_made_and_come_where_there_are_none() {
    let mut without = spec();
    without["volumeClaimTemplates"] = json!(null);
    assert_eq!(body(&without)["spec"]["volumes"], without["template"]["spec"]["volumes"]);
    for served in [json!(null), json!([])] {
        let mut spec = spec();
        spec["template"]["spec"]["volumes"] = served;
        let claim = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data-web-1" } });
        assert_eq!(body(&spec)["spec"]["volumes"], json!([claim]));
    }
    let mut odd = set(&spec());
    odd.spec.template = serde_json::from_value(json!({ "spec": { "volumes": 1 } })).unwrap();
    assert!(pod_body(&odd, &odd.spec.template, 1, "web-5d4f").is_err());
}

#[test]
fn values_of_the_template_stay_as_they_were_served() {
    let mut odd = set(&spec());
    odd.spec.template = serde_json::from_str(r#"{"spec":{"volumes":[],"a":1.0,"b":"\u003c","c":1e400}}"#).unwrap();
    let body = pod_body(&odd, &odd.spec.template, 0, "web-5d4f").unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.contains(r#""a":1.0,"b":"\u003c","c":1e400"#), "{body}");
}

/// Rows of upstream's `TestGetPersistentVolumeClaims`.
#[test]
fn a_claim_has_its_template_and_the_labels_of_the_selector() {
    let served = set(&spec());
    let claim = |set: &StatefulSet| sent(&claim_body(set, &set.spec.volume_claim_templates[0], "data-web-1").unwrap());
    let metadata = json!({
        "name": "data-web-1", "namespace": "default", "labels": { "app": "web", "tier": "db" },
        "annotations": { "key": "value" },
    });
    let expected = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
        "spec": { "accessModes": ["ReadWriteOnce"], "notKnownYet": 1 },
    });
    assert_eq!(claim(&served), expected);

    for (labels, match_labels, expected) in [
        (json!(null), json!({ "app": "web" }), json!({ "app": "web" })),
        (json!({ "a": "1" }), json!({}), json!({ "a": "1" })),
        (json!(null), json!({}), json!(null)),
        (json!({ "a": "1", "app": "x" }), json!({ "app": "web" }), json!({ "a": "1", "app": "web" })),
    ] {
        let mut spec = spec();
        spec["volumeClaimTemplates"][0]["metadata"]["labels"] = labels.clone();
        spec["selector"]["matchLabels"] = match_labels;
        assert_eq!(claim(&set(&spec))["metadata"]["labels"], expected, "{labels}");
    }
}

#[test]
fn a_pod_is_patched_by_what_differs() {
    let set = set(&spec());
    let labels = json!({ "statefulset.kubernetes.io/pod-name": "web-2", "apps.kubernetes.io/pod-index": "2" });
    assert_eq!(pod_patch(&set, 2, true, false), json!({ "metadata": { "labels": labels } }));
    let claim = json!({ "claimName": "data-web-2" });
    let kept = json!(["name", "persistentVolumeClaim"]);
    let volume = json!({ "name": "data", "persistentVolumeClaim": claim, "$retainKeys": kept });
    assert_eq!(pod_patch(&set, 2, false, true), json!({ "spec": { "volumes": [volume] } }));
}

#[test]
fn owners_of_a_claim_go_and_come_by_their_uids() {
    let of =
        |resource, name: &str| Owner { resource, key: Key::new("default", name), uid: uid(name), being_deleted: false };
    let change = |add: Option<Owner>| OwnerChange {
        claim: Key::new("default", "data-web-1"),
        uid: uid("data-web-1"),
        resource_version: ResourceVersion(7),
        remove: [uid("web")].into(),
        add,
    };
    let gone = json!({ "$patch": "delete", "uid": uid("web") });
    assert_eq!(owners_patch(&change(None)), json!({ "metadata": { "ownerReferences": [gone] } }));
    let (of_set, of_pod) = (of(STATEFUL_SETS, "set"), of(PODS, "web-1"));
    for (owner, api_version, kind) in [(of_set, "apps/v1", "StatefulSet"), (of_pod, "v1", "Pod")] {
        let come = json!({ "apiVersion": api_version, "kind": kind, "name": owner.key.name(), "uid": owner.uid,
            "controller": true, "blockOwnerDeletion": true });
        assert_eq!(owners_patch(&change(Some(owner))), json!({ "metadata": { "ownerReferences": [gone, come] } }));
    }
}
