use serde_json::json;

use super::*;
use crate::api::resource::{NODES, PODS};

#[track_caller]
fn check(path: &str, expected: Option<&str>) {
    assert_eq!(Subject::of_path(path).map(|subject| subject.to_string()).as_deref(), expected, "{path}");
}

#[test]
fn an_object_is_named_by_its_path() {
    check("/api/v1/namespaces/default/pods/web-a", Some("pods default/web-a"));
    check("/api/v1/namespaces/default", Some("namespaces default"));
    check("/api/v1/nodes/a", Some("nodes a"));
    check("/apis/batch/v1/namespaces/a/jobs/b", Some("jobs.batch a/b"));
    check(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Fb%20c",
        Some("clusterroles.rbac.authorization.k8s.io a?b c"),
    );
    for none in [
        "",
        "/api/v1/namespaces/payments/namespaces/tenant",
        "/",
        "/api/v1/pods",
        "/apis/batch/v1/namespaces/a/jobs",
        "/apis/batch/v1/namespaces/a/jobs/b/status",
        "/apis/batch/v1/namespaces/a/jobs/..",
        "/apis/batch/v1/namespaces/a/jobs/%2e%2e",
        "/apis/batch/v1/namespaces/a/jobs/a%2Fb",
        "/apis/batch/v1/namespaces/a/jobs/%ff",
        "/healthz/v1/nodes/a",
    ] {
        check(none, None);
    }
}

#[test]
fn a_key_is_of_the_group_and_the_plural_whatever_the_version() {
    let subject = Subject::of_path("/api/v7/namespaces/default/pods/web-a").unwrap();
    assert_eq!(subject.key_of(&PODS), Some(Key::new("default", "web-a")));
    let other = Resource::namespaced("metrics.k8s.io", "v1", "PodMetrics", "pods");
    assert_eq!(subject.key_of(&other), None);
}

#[test]
fn a_namespace_in_the_path_gives_no_access_to_what_lives_in_none() {
    let key_of = |path: &str, resource: &Resource| Subject::of_path(path).unwrap().key_of(resource);
    assert_eq!(key_of("/api/v1/nodes/a", &NODES), Some(Key::new("", "a")));
    assert_eq!(key_of("/api/v1/namespaces/tenant/nodes/a", &NODES), None);
    assert_eq!(key_of("/api/v1/pods/a", &PODS), None);
}

/// An operator's answer about a Deployment that fails, waits and is held.
fn explanation() -> Explanation {
    serde_json::from_value(json!({
        "operator": "deployment-operator", "version": "0.1.0", "role": "leader", "time": "2026-01-01T00:00:10Z",
        "object": {"group": "apps", "version": "v1", "resource": "deployments", "namespace": "default", "name": "web"},
        "keys": [{
            "queue": "deployment", "key": "default/web",
            "now": [{"text": "rolling update", "reason": "rollingUpdate"}],
            "last": [{
                "time": "2026-01-01T00:00:05Z", "first": "2026-01-01T00:00:00Z", "count": 3, "outcome": "failed",
                "stages": [{"text": "adopt web-a"}, {"text": "rolling update"}], "error": "no quota",
                "cause": {"resource": "pods", "object": "default/web-a", "version": 7},
            }],
            "standing": {
                "failures": 3, "nextTry": "2026-01-01T00:00:12Z", "processing": "2026-01-01T00:00:09Z",
                "held": [{"resource": "replicasets.apps", "until": "version 9"}],
                "timer": {"due": "2026-01-01T00:00:20Z", "purpose": "its progress deadline"},
            },
        }],
        "caches": [
            {"resource": "replicasets.apps", "synced": true, "version": 8, "heard": "2026-01-01T00:00:08Z",
             "unreadable": {"default/odd": "no name"}},
            {"resource": "pods", "of": "labels app", "synced": false, "version": 0, "failing": "forbidden"},
        ],
    }))
    .unwrap()
}

#[test]
fn a_person_reads_it_line_by_line() {
    let expected = "\
deployments.apps default/web, by deployment-operator 0.1.0, which leads, at 2026-01-01T00:00:10Z
queue deployment, key default/web: held until replicasets.apps has version 9, failed 3 times in a row, \
next retry at 2026-01-01T00:00:12Z, next sync at 2026-01-01T00:00:20Z for its progress deadline
  now: rolling update
  2026-01-01T00:00:05Z: adopt web-a, then rolling update, failed: no quota; 3 times since 2026-01-01T00:00:00Z
cache replicasets.apps: version 8, last heard at 2026-01-01T00:00:08Z, cannot decode default/odd: no name
cache pods (labels app): not listed yet, failing: forbidden
";
    assert_eq!(explanation().to_string(), expected);
    let nothing = Explanation { keys: Vec::new(), caches: Vec::new(), role: Role::Standby, ..explanation() };
    assert!(nothing.to_string().ends_with("stands by, at 2026-01-01T00:00:10Z\nThis operator does not act on it.\n"));
}

#[test]
fn programs_read_what_was_written() {
    let written = serde_json::to_string(&explanation()).unwrap();
    assert_eq!(serde_json::from_str::<Explanation>(&written).unwrap(), explanation());
}
