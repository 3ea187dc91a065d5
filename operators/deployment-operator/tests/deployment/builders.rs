//! Short ways to say what there is: built as the JSON that the apiserver would serve.

use std::collections::BTreeMap;
use std::sync::Arc;

use deployment_operator::objects::{self, annotations};
use deployment_operator::observe::Observed;
use deployment_operator::plan::limits::max_replicas;
use deployment_operator::plan::{Plan, ReplicaSetUpdate, Step, plan};
use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::object::Uid;
use shared::api::time::Time;

/// The second of [`now`].
pub(crate) const NOW: i64 = 1_000_000;

pub(crate) fn now() -> Timestamp {
    at(NOW)
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// How the API writes a second.
pub(crate) fn time(second: i64) -> String {
    Time::from_second(second).to_string()
}

/// A uid that stands for a name.
pub(crate) fn uid(name: &str) -> String {
    Uid::parse(name).to_string()
}

pub(crate) fn template(version: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "c", "image": version }] } })
}

#[derive(Clone, Debug)]
pub(crate) struct Deployment(pub(crate) Value);

/// A Deployment `web` of template `version`: `RollingUpdate` without surge, nothing else set, settled.
pub(crate) fn deployment(version: &str, replicas: i32) -> Deployment {
    Deployment(json!({
        "metadata": { "name": "web", "namespace": "ns", "uid": uid("web"), "resourceVersion": "7", "generation": 2,
            "annotations": {} },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": "web" } }, "template": template(version),
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 0 } } },
        "status": {},
    }))
}

impl Deployment {
    pub(crate) fn rolling(mut self, max_surge: impl Into<Value>, max_unavailable: impl Into<Value>) -> Self {
        let limits = json!({ "maxSurge": max_surge.into(), "maxUnavailable": max_unavailable.into() });
        self.0["spec"]["strategy"] = json!({ "type": "RollingUpdate", "rollingUpdate": limits });
        self
    }

    pub(crate) fn strategy(mut self, type_: &str) -> Self {
        self.0["spec"]["strategy"] = json!({ "type": type_ });
        self
    }

    pub(crate) fn recreate(self) -> Self {
        self.strategy("Recreate")
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.0["metadata"]["name"] = name.into();
        self
    }

    pub(crate) fn annotate(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["annotations"][key] = value.into();
        self
    }

    pub(crate) fn being_deleted(mut self) -> Self {
        self.0["metadata"]["deletionTimestamp"] = time(NOW).into();
        self
    }

    /// Sets one field of the spec.
    pub(crate) fn spec(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0["spec"][field] = value.into();
        self
    }

    /// Sets one field of the status.
    pub(crate) fn status(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0["status"][field] = value.into();
        self
    }

    /// Sets the counts of the status.
    pub(crate) fn counts(self, replicas: i32, updated: i32, ready: i32, available: i32) -> Self {
        self.status("replicas", replicas)
            .status("updatedReplicas", updated)
            .status("readyReplicas", ready)
            .status("availableReplicas", available)
    }

    pub(crate) fn deadline(self, seconds: i32) -> Self {
        self.spec("progressDeadlineSeconds", seconds)
    }

    pub(crate) fn paused(self) -> Self {
        self.spec("paused", true)
    }

    /// Sets a Progressing condition of this second as the only one.
    pub(crate) fn progressing(self, status: &str, reason: &str, second: i64) -> Self {
        let condition = json!({ "type": "Progressing", "status": status, "reason": reason, "message": "earlier",
            "lastUpdateTime": time(second), "lastTransitionTime": time(second) });
        self.status("conditions", vec![condition])
    }

    pub(crate) fn build(&self) -> objects::Deployment {
        serde_json::from_value(self.0.clone()).unwrap()
    }

    /// With these ReplicaSets. What they do not say themselves fits: their notes of the Deployment's size, and the
    /// Deployment's revision.
    pub(crate) fn with(&self, sets: &[ReplicaSet]) -> Observed {
        let mut deployment = self.clone();
        let own_template = deployment.0["spec"]["template"].clone();
        let new = sets.iter().find(|set| set.template_without_hash() == own_template);
        if let (Some(new), None) = (new, deployment.0["metadata"]["annotations"].get(annotations::REVISION)) {
            let revision = new.0["metadata"]["annotations"][annotations::REVISION].clone();
            deployment.0["metadata"]["annotations"][annotations::REVISION] = revision;
        }
        let deployment = deployment.build();
        let sets = sets.iter().map(|set| Arc::new(set.sized_as(&deployment).build())).collect();
        Observed::new(Arc::new(deployment), sets)
    }

    /// The same, where a list has found pods: the version of their ReplicaSet, and the second since when they have been
    /// ending.
    pub(crate) fn with_pods(&self, sets: &[ReplicaSet], pods: &[(&str, Option<i64>)]) -> Observed {
        let found =
            |(version, since): &(&str, Option<i64>)| (Uid::parse(&uid(&format!("web-{version}"))), since.map(at));
        self.with(sets).with_live_pods(pods.iter().map(found).collect())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ReplicaSet(pub(crate) Value);

/// A ReplicaSet `web-v<n>` of template `v<n>`, created at second n as revision n, all its pods available.
pub(crate) fn set(version: &str, replicas: i32) -> ReplicaSet {
    let name = format!("web-{version}");
    let number: i64 = version.trim_start_matches('v').parse().unwrap();
    let mut pods = template(version);
    pods["metadata"]["labels"]["pod-template-hash"] = version.into();
    let owners = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid("web"),
        "controller": true }]);
    ReplicaSet(json!({
        "metadata": { "name": name, "namespace": "ns", "uid": uid(&name), "resourceVersion": (100 + number).to_string(),
            "generation": 1, "creationTimestamp": time(number), "ownerReferences": owners,
            "annotations": { annotations::REVISION: number.to_string() } },
        "spec": { "replicas": replicas, "selector": {}, "template": pods },
        "status": { "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
            "observedGeneration": 1, "terminatingReplicas": 0 },
    }))
}

impl ReplicaSet {
    pub(crate) fn available(mut self, pods: i32) -> Self {
        self.0["status"]["availableReplicas"] = pods.into();
        self.0["status"]["readyReplicas"] = pods.into();
        self
    }

    /// Sets one field of the status.
    pub(crate) fn status(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0["status"][field] = value.into();
        self
    }

    /// Sets one field of the metadata.
    pub(crate) fn meta(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0["metadata"][field] = value.into();
        self
    }

    pub(crate) fn annotate(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["annotations"][key] = value.into();
        self
    }

    pub(crate) fn without(mut self, key: &str) -> Self {
        self.0["metadata"]["annotations"].as_object_mut().unwrap().remove(key);
        self
    }

    pub(crate) fn created(self, second: i64) -> Self {
        self.meta("creationTimestamp", time(second))
    }

    /// Notes the size that the Deployment had, and its size with surge.
    pub(crate) fn sized_for(self, desired: i32, max: i32) -> Self {
        self.annotate(annotations::DESIRED_REPLICAS, &desired.to_string())
            .annotate(annotations::MAX_REPLICAS, &max.to_string())
    }

    pub(crate) fn failing(self, reason: &str) -> Self {
        let condition = json!([{ "type": "ReplicaFailure", "status": "True", "reason": reason, "message": "no",
            "lastTransitionTime": time(50) }]);
        self.status("conditions", condition)
    }

    pub(crate) fn of_template(mut self, version: &str) -> Self {
        self.0["spec"]["template"]["spec"] = template(version)["spec"].clone();
        self
    }

    fn template_without_hash(&self) -> Value {
        let mut template = self.0["spec"]["template"].clone();
        template["metadata"]["labels"].as_object_mut().unwrap().remove("pod-template-hash");
        template
    }

    fn sized_as(&self, deployment: &objects::Deployment) -> Self {
        let own: BTreeMap<String, String> = serde_json::from_value(self.0["metadata"]["annotations"].clone()).unwrap();
        if own.contains_key(annotations::DESIRED_REPLICAS) || own.contains_key("unsized") {
            return self.clone();
        }
        self.clone().sized_for(deployment.spec.replicas, max_replicas(&deployment.spec))
    }

    pub(crate) fn build(&self) -> objects::ReplicaSet {
        serde_json::from_value(self.0.clone()).unwrap()
    }
}

pub(crate) fn planned(observed: &Observed) -> Plan {
    plan(observed, now())
}

/// Checks a whole plan.
#[track_caller]
pub(crate) fn check(observed: &Observed, expected: &str) {
    assert_eq!(planned(observed).to_string(), expected);
}

/// The steps of a plan that has nothing but updates.
pub(crate) fn updates(plan: &Plan) -> Vec<ReplicaSetUpdate> {
    let update = |step: &Step| {
        let Step::UpdateReplicaSet(update) = step else { panic!("{plan}") };
        update.clone()
    };
    plan.steps.iter().map(update).collect()
}
