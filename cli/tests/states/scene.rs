//! Builders: objects with little in them, and what operators say of them.

use std::collections::BTreeMap;

use cli::cause::State;
use cli::evidence::{Asked, Evidence, Target, Unread};
use cli::lease::Lease;
use cli::lookup::Lookup;
use cli::runner::Manager;
use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::explain::{CacheState, Decision, Explanation, KeyState, Outcome, Role, Stage, Standing, Subject};

/// One state, and what is said of it.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) evidence: Evidence,
    pub(crate) state: State,
    pub(crate) expected: &'static str,
}

pub(crate) fn row(evidence: Evidence, state: State, expected: &'static str) -> Row {
    Row { evidence, state, expected }
}

/// So many seconds from now, which is always the same.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

pub(crate) fn time(seconds: i64) -> String {
    at(seconds).to_string()
}

/// `value` with what `changes` has of it.
pub(crate) fn with(mut value: Value, changes: &Value) -> Value {
    merge(&mut value, changes);
    value
}

fn merge(value: &mut Value, changes: &Value) {
    match (value, changes) {
        (Value::Object(value), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(value.entry(key.clone()).or_insert(Value::Null), change);
            }
        }
        (value, changes) => *value = changes.clone(),
    }
}

/// An object; its uid is its name.
pub(crate) fn object(api_version: &str, kind: &str, name: &str, rest: &Value) -> Value {
    let base = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "name": name, "namespace": "team", "uid": name, "creationTimestamp": time(-600) },
    });
    with(base, rest)
}

/// With this owner.
pub(crate) fn owned(value: Value, kind: &str, owner: &str) -> Value {
    let api_version = match kind {
        "Job" | "CronJob" => "batch/v1",
        "Pod" | "ReplicationController" => "v1",
        _ => "apps/v1",
    };
    let reference = json!({
        "apiVersion": api_version, "kind": kind, "name": owner, "uid": owner, "controller": true, "blockOwnerDeletion": true,
    });
    with(value, &json!({ "metadata": { "ownerReferences": [reference] } }))
}

pub(crate) fn deployment(replicas: i64, rest: &Value) -> Value {
    let base = json!({
        "metadata": { "generation": 4, "creationTimestamp": time(-3600) },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } } },
        },
        "status": { "observedGeneration": 4, "replicas": replicas, "updatedReplicas": replicas },
    });
    with(object("apps/v1", "Deployment", "web", &base), rest)
}

pub(crate) fn replica_set(replicas: i64, rest: &Value) -> Value {
    let labels = json!({ "app": "web", "pod-template-hash": "6d4" });
    let base = json!({
        "metadata": { "labels": labels },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels } },
        },
        "status": { "replicas": replicas },
    });
    owned(with(object("apps/v1", "ReplicaSet", "web-6d4", &base), rest), "Deployment", "web")
}

/// A ready pod of web-6d4.
pub(crate) fn pod(name: &str, rest: &Value) -> Value {
    let base = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "nodeName": "n1", "containers": [{ "name": "main" }], "schedulerName": "default-scheduler" },
        "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": time(-300) }],
        },
    });
    owned(with(object("v1", "Pod", name, &base), rest), "ReplicaSet", "web-6d4")
}

/// A pod whose only container is in this state.
pub(crate) fn pod_in(state: &Value, rest: &Value) -> Value {
    let status = with(json!({ "name": "main", "image": "web:2", "ready": false }), state);
    let base = json!({
        "status": {
            "phase": "Pending",
            "conditions": [{ "type": "Ready", "status": "False" }],
            "containerStatuses": [status],
        },
    });
    with(pod("web-a", &base), rest)
}

/// So many ready pods.
pub(crate) fn pods(count: usize) -> Vec<Value> {
    (0..count).map(|index| pod(&format!("web-{index}"), &json!({}))).collect()
}

pub(crate) fn event(about: &str, reason: &str, message: &str, seconds: i64) -> Value {
    let rest = json!({
        "involvedObject": { "uid": about, "name": about },
        "reason": reason, "message": message, "type": "Warning", "count": 9, "lastTimestamp": time(seconds),
    });
    object("v1", "Event", &format!("{about}.{reason}"), &rest)
}

/// The evidence about the first of these objects; both of its operators are at work and have nothing to say.
pub(crate) fn evidence(objects: Vec<Value>) -> Evidence {
    let text = |pointer: &str| objects[0].pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (group, version) = match text("/apiVersion").split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text("/apiVersion")),
    };
    let target = Target {
        group,
        version,
        kind: text("/kind"),
        resource: format!("{}s", text("/kind").to_lowercase()),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    };
    let names =
        ["deployment-operator", "replicaset-operator", "job-operator", "cronjob-operator", "endpointslice-operator"];
    let more = [
        "namespace-operator",
        "garbage-collector-operator",
        "ttl-after-finished-operator",
        "service-lb-operator",
        "cloud-node-operator",
    ];
    let operators = names.iter().chain(&more).map(|name| asked(name)).collect();
    let manager = Manager { lease: Lookup::Absent, ..Manager::default() };
    Evidence { now: at(0), target, objects, operators, manager, ..Evidence::default() }
}

pub(crate) fn lease(holder: &str, renewed: i64) -> Lookup<Lease> {
    Lookup::Found(Lease {
        holder: holder.to_owned(),
        renewed: Some(at(renewed)),
        acquired: Some(at(-7200)),
        seconds: 15,
    })
}

fn asked(operator: &str) -> Asked {
    Asked { operator: operator.to_owned(), lease: lease("op-0_1", -2), ..Asked::default() }
}

/// This operator, for a change.
pub(crate) fn operator(mut evidence: Evidence, name: &str, change: impl FnOnce(&mut Asked)) -> Evidence {
    change(evidence.operators.iter_mut().find(|asked| asked.operator == name).expect(name));
    evidence
}

/// This operator, as it speaks of an object.
pub(crate) fn says(
    evidence: Evidence,
    name: &str,
    (resource, about): (&str, &str),
    change: impl FnOnce(&mut Explanation),
) -> Evidence {
    operator(evidence, name, |asked| {
        let mut said = explanation(name, resource, about);
        change(&mut said);
        asked.answers.push(said);
    })
}

pub(crate) fn explanation(operator: &str, resource: &str, name: &str) -> Explanation {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let object = Subject {
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        namespace: "team".to_owned(),
        name: name.to_owned(),
    };
    let key = KeyState {
        queue: resource.trim_end_matches('s').to_owned(),
        key: format!("team/{name}"),
        now: vec![Stage { text: "nothing to do".to_owned(), reason: Value::Null }],
        last: Vec::new(),
        standing: Standing::default(),
    };
    Explanation {
        operator: operator.to_owned(),
        version: "v0.1.0".to_owned(),
        role: Role::Leader,
        time: at(0),
        object,
        keys: vec![key],
        caches: vec![cache("pods"), cache("replicasets.apps")],
    }
}

pub(crate) fn cache(resource: &str) -> CacheState {
    CacheState {
        resource: resource.to_owned(),
        of: String::new(),
        synced: true,
        version: 4711,
        heard: Some(at(-30)),
        failing: None,
        unreadable: BTreeMap::new(),
    }
}

/// Its last sync failed so.
pub(crate) fn fails(said: &mut Explanation, text: &str, error: &str) {
    let stages = vec![Stage { text: text.to_owned(), reason: Value::Null }];
    said.keys[0].now.clone_from(&stages);
    said.keys[0].last = vec![Decision {
        time: at(-20),
        first: at(-90),
        count: 1,
        stages,
        outcome: Outcome::Failed,
        error: Some(error.to_owned()),
        cause: None,
        wrote: Vec::new(),
        more_written: 0,
    }];
    said.keys[0].standing = Standing { failures: 4, next_try: Some(at(12)), ..Standing::default() };
}

pub(crate) fn hidden(what: &str) -> Unread {
    Unread { what: what.to_owned(), why: "permission denied".to_owned() }
}
