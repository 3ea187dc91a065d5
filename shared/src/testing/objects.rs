//! Objects as the apiserver would serve them, built in a line.
//!
//! Left out: validation. A test may build what no apiserver would store.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{NOW, protobuf};
use crate::api::object::{Kind, Uid};
use crate::api::pod::DeletionCost;

/// The uid that [`object`] gives to this name.
pub fn uid(name: &str) -> Uid {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    Uid::parse(&format!("{:08x}-0000-4000-8000-{:012x}", hash >> 32, hash & 0xffff_ffff))
}

/// An object of any kind: namespace `default`, generation 1, resourceVersion 1, created at [`NOW`].
pub fn object(api_version: &str, kind: &str, name: &str) -> ObjectBuilder {
    ObjectBuilder(json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": uid(name).to_string(),
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": NOW.to_string(),
        },
    }))
}

/// The length of an argument that makes a template about as large as etcd stores one.
pub const LARGE_BYTES: usize = 1_400_000;

/// A pod template whose first container has an argument of [`LARGE_BYTES`].
pub fn enlarged(mut template: Value) -> Value {
    let containers = &mut template["spec"]["containers"];
    if containers.get(0).is_none() {
        *containers = json!([{}]);
    }
    containers[0]["args"] = json!(["x".repeat(LARGE_BYTES)]);
    template
}

/// How long the arguments of the first container of a pod spec are.
pub fn args_bytes(spec: &Value) -> usize {
    spec["containers"][0]["args"][0].as_str().map_or(0, str::len)
}

/// A pod that runs on `node` and is not ready.
pub fn pod(name: &str) -> ObjectBuilder {
    object("v1", "Pod", name).node("node").phase("Running")
}

/// An object under construction.
#[derive(Clone, Debug)]
pub struct ObjectBuilder(Value);

#[expect(clippy::return_self_not_must_use, reason = "a builder's methods are of no use but in a chain")]
impl ObjectBuilder {
    /// An object that there was, such as one that is added again.
    pub(super) fn of(json: Value) -> Self {
        Self(json)
    }

    /// Sets the field at this path (`["spec", "replicas"]`), and the objects on the way to it.
    pub fn set(mut self, path: &[&str], value: impl Into<Value>) -> Self {
        *path.iter().fold(&mut self.0, |at, field| {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            &mut at[*field]
        }) = value.into();
        self
    }

    fn append(self, path: &[&str], value: Value) -> Self {
        let mut list = path.iter().try_fold(&self.0, |at, field| at.get(field)).cloned().unwrap_or_default();
        match &mut list {
            Value::Array(values) => values.push(value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                list = Value::Array(vec![value]);
            }
        }
        self.set(path, list)
    }

    /// `metadata.namespace`.
    pub fn namespace(self, namespace: &str) -> Self {
        self.set(&["metadata", "namespace"], namespace)
    }

    /// `metadata.uid`: that of another name, or with [`Self::set`] any.
    pub fn uid_of(self, name: &str) -> Self {
        self.set(&["metadata", "uid"], uid(name).to_string())
    }

    /// `metadata.generation`.
    pub fn generation(self, generation: i64) -> Self {
        self.set(&["metadata", "generation"], generation)
    }

    /// One of `metadata.labels`.
    pub fn label(self, key: &str, value: &str) -> Self {
        self.set(&["metadata", "labels", key], value)
    }

    /// One of `metadata.annotations`.
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.set(&["metadata", "annotations", key], value)
    }

    /// `metadata.creationTimestamp`.
    pub fn created(self, at: Timestamp) -> Self {
        self.set(&["metadata", "creationTimestamp"], at.to_string())
    }

    /// Sets `metadata.deletionTimestamp` to [`NOW`].
    pub fn terminating(self) -> Self {
        self.set(&["metadata", "deletionTimestamp"], NOW.to_string())
    }

    /// Adds an ownerReference with `controller: true`.
    pub fn owned_by<T: Kind>(self, owner: &T) -> Self {
        let reference = json!({
            "apiVersion": T::RESOURCE.api_version(),
            "kind": T::RESOURCE.kind,
            "name": owner.meta().name(),
            "uid": owner.meta().uid.to_string(),
            "controller": true,
            "blockOwnerDeletion": true,
        });
        self.append(&["metadata", "ownerReferences"], reference)
    }

    /// Of a pod: `spec.nodeName`; `""` for none.
    pub fn node(self, node: &str) -> Self {
        self.set(&["spec", "nodeName"], node)
    }

    /// Of a pod: `status.phase`.
    pub fn phase(self, phase: &str) -> Self {
        self.set(&["status", "phase"], phase)
    }

    /// Of a pod: ready since [`NOW`].
    pub fn ready(self) -> Self {
        self.ready_since(NOW)
    }

    /// Of a pod: ready since this instant.
    pub fn ready_since(self, at: Timestamp) -> Self {
        let condition = json!({ "type": "Ready", "status": "True", "lastTransitionTime": at.to_string() });
        self.append(&["status", "conditions"], condition)
    }

    /// Of a pod: pending, and the scheduler has found no node for it.
    pub fn unschedulable(self) -> Self {
        let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
        self.node("").phase("Pending").append(&["status", "conditions"], condition)
    }

    /// Of a pod: the restarts of its only container.
    pub fn restarts(self, count: i32) -> Self {
        self.set(&["status", "containerStatuses"], json!([{ "name": "main", "restartCount": count }]))
    }

    /// Of a pod: the annotation that asks for early or late deletion.
    pub fn deletion_cost(self, cost: &str) -> Self {
        self.annotation(DeletionCost::ANNOTATION, cost)
    }

    /// The JSON.
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// The JSON, read into a view. A pod is read from protobuf, too, and both must be the same.
    pub fn build<T: DeserializeOwned + fmt::Debug>(&self) -> Arc<T> {
        let view: T = self.expect(serde_json::from_str(&self.0.to_string()));
        if self.0["kind"] == "Pod" {
            let listed = self.expect(protobuf::read_pod::<T>(&self.0));
            assert_eq!(format!("{listed:?}"), format!("{view:?}"), "as protobuf and as JSON: {}", self.0);
        }
        Arc::new(view)
    }

    fn expect<T>(&self, read: serde_json::Result<T>) -> T {
        match read {
            Ok(view) => view,
            #[expect(clippy::panic, reason = "a fixture that does not read is a broken test")]
            Err(error) => panic!("{error}: {}", self.0),
        }
    }
}
