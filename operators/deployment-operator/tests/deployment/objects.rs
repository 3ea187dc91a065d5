//! The fields that the views read, and their defaults.

use deployment_operator::objects::{Deployment, Pod, ReplicaSet, Strategy, annotations};
use serde_json::{Value, json};
use shared::api::object::Uid;

use crate::builders::{deployment, set};

#[test]
fn what_the_apiserver_leaves_out_has_its_default() {
    let least = json!({ "metadata": { "name": "web" }, "spec": { "selector": {}, "template": {} } });
    let read: Deployment = serde_json::from_value(least.clone()).unwrap();
    assert_eq!((read.spec.replicas, read.spec.paused, read.status.replicas), (1, false, 0));
    assert_eq!(read.spec.strategy, Strategy::Unknown("".into()));
    let read: ReplicaSet = serde_json::from_value(least).unwrap();
    assert_eq!((read.spec.replicas, read.status.terminating_replicas), (1, None));
}

#[test]
fn null_is_read_as_nothing() {
    let nulls = deployment("v1", 1).status("conditions", Value::Null).status("collisionCount", Value::Null).build();
    assert!(nulls.status.conditions.is_empty());
    assert!(set("v1", 1).status("conditions", Value::Null).build().status.conditions.is_empty());
}

#[test]
fn odd_values_do_not_make_an_object_unreadable() {
    let odd = deployment("v1", 1).rolling("odd", Value::Null).build();
    assert!(matches!(odd.spec.strategy, Strategy::RollingUpdate { max_surge: Some(_), max_unavailable: None }));
}

#[test]
fn kubectls_memory_is_not_kept() {
    let read = deployment("v1", 1).annotate(annotations::LAST_APPLIED, "{}").annotate("a", "1").build();
    assert_eq!(read.metadata.annotations.iter().collect::<Vec<_>>(), [("a", "1")]);
}

#[test]
fn a_pod_has_been_ending_since_its_grace_began() {
    let since = |metadata: &str| {
        let pod: Pod = serde_json::from_str(&format!(r#"{{"metadata":{{"name":"p"{metadata}}}}}"#)).unwrap();
        pod.ending_since().map(|since| since.to_string())
    };
    assert_eq!(since(""), None);
    let deleted = r#","deletionTimestamp":"2025-01-01T00:00:30Z""#;
    let at = |text: &str| Some(text.to_owned());
    assert_eq!(since(deleted), at("2025-01-01T00:00:30Z"));
    for (grace, expected) in [("30", "00Z"), ("0", "30Z"), ("null", "30Z"), ("-5", "30Z")] {
        let graced = format!(r#"{deleted},"deletionGracePeriodSeconds":{grace}"#);
        assert_eq!(since(&graced), at(&format!("2025-01-01T00:00:{expected}")), "{grace}");
    }
    assert_eq!(since(&format!(r#"{deleted},"deletionGracePeriodSeconds":{}"#, i64::MAX)), None);
}

#[test]
fn a_pod_is_its_controllers() {
    let owners = json!([{ "kind": "ReplicaSet", "name": "a", "uid": "a" },
        { "kind": "ReplicaSet", "name": "b", "uid": "b", "controller": true }]);
    let pod: Pod = serde_json::from_value(json!({ "metadata": { "name": "p", "ownerReferences": owners } })).unwrap();
    assert_eq!(pod.controller_uid(), Some(Uid::parse("b")));
}
