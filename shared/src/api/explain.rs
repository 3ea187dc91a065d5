//! The JSON that an operator serves about one object (`/why/…`) and about itself (`/debug/status`).
//!
//! Operators write these values and `kubectl operators` reads them, so both sides change together; `docs/why.md`
//! describes them for everybody else. A field may be added at any time; one that changes its meaning gets another name.
//! Left out: where the values come from, and words for people, which the reader chooses.

mod text;

use std::collections::BTreeMap;

use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::object::Key;
use crate::api::resource::Resource;
use crate::api::url::is_segment;

/// Where the explanation of an object is served: this, followed by the path that the apiserver serves the object under.
pub const WHY_PATH: &str = "/why";
pub const STATUS_PATH: &str = "/debug/status";
/// Where an operator that runs as a shadow lists what it would write.
pub const SHADOW_PATH: &str = "/debug/shadow";

/// The audience of tokens that are for operators alone: an apiserver does not take them, so an operator that was taken
/// over cannot act as who asked it.
pub const AUDIENCE: &str = "kubernetes-operators";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// It holds the Lease and works, or works without an election.
    Leader,
    /// It keeps its caches warm and waits for the Lease.
    Standby,
    /// It decides and never writes.
    Shadow,
}

/// All that one replica of an operator knows about one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `deployment-operator`.
    pub operator: String,
    pub version: String,
    /// The replica's role. A standby shows the decisions that it would make.
    pub role: Role,
    pub time: Timestamp,
    pub object: Subject,
    /// The keys under which the operator syncs the object, one for each queue that has it; none if the operator does
    /// not act on the object.
    pub keys: Vec<KeyState>,
    pub caches: Vec<CacheState>,
}

/// An object, named by its resource and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// `""` is the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// The plural, as in paths: `deployments`.
    pub resource: String,
    /// `""` for what lives in no namespace.
    pub namespace: String,
    pub name: String,
}

impl Subject {
    /// From the path under which the apiserver serves the object: `/apis/apps/v1/namespaces/default/deployments/web`.
    /// None for what is no such path. A Namespace is in no namespace: an apiserver authorizes it by its own name.
    pub fn of_path(path: &str) -> Option<Self> {
        let decoded = |segment: &str| Some(percent_decode_str(segment).decode_utf8().ok()?.into_owned());
        let segments: Vec<String> = path.strip_prefix('/')?.split('/').map(decoded).collect::<Option<_>>()?;
        let mut segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if segments.first() == Some(&"api") {
            segments.insert(1, "");
        }
        let (group, version, namespace, resource, name) = match segments[..] {
            ["api" | "apis", group, version, resource, name] => (group, version, "", resource, name),
            ["api" | "apis", group, version, "namespaces", namespace, resource, name] if resource != "namespaces" => {
                (group, version, namespace, resource, name)
            }
            _ => return None,
        };
        let are_named = [version, resource, name].into_iter().all(is_segment);
        are_named.then(|| Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Namespace and name, if the object is of this resource, in any version.
    ///
    /// None for a path with a namespace to what lives in none: rights in a namespace would give access to it, because
    /// RBAC does not know which resources are namespaced.
    pub fn key_of(&self, resource: &Resource) -> Option<Key> {
        let Resource { group, plural, version: _, kind: _, namespaced } = resource;
        let is_of_it = *group == self.group && *plural == self.resource && *namespaced != self.namespace.is_empty();
        is_of_it.then(|| self.key())
    }

    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyState {
    pub queue: String,
    /// `namespace/name`, or another name that the queue uses.
    pub key: String,
    /// The stages that a sync would decide now from the caches, up to the first that needs a write or a live read; none
    /// if the caches do not have the object.
    pub now: Vec<Stage>,
    /// Its last decisions, the newest first.
    pub last: Vec<Decision>,
    pub standing: Standing,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// The stage in one line: `create 3 (2 of 5 active)`.
    pub text: String,
    /// The reason: a case and its fields, such as `{"replicas":{"active":2,"wanted":5}}`; a case without fields is a
    /// string.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub reason: Value,
}

/// The decision of one sync, or of several syncs in a row that decided the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// When the last of these syncs began.
    pub time: Timestamp,
    /// When the first of them began.
    pub first: Timestamp,
    /// How many syncs there were.
    pub count: u64,
    /// The stages in order.
    pub stages: Vec<Stage>,
    /// How the last sync ended.
    pub outcome: Outcome,
    /// The error of the last sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The last change that led to one of the syncs; none if only timers, retries or the start of work did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Version>,
    /// The writes of the last sync, as the apiserver answered; at most a few, `more_written` counts the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrote: Vec<Version>,
    /// How many more writes there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_written: u64,
}

/// How a sync ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    Applying,
    Done,
    /// It failed, and is tried again.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// As upstream prints it: `pods`, `replicasets.apps`.
    pub resource: String,
    /// `namespace/name`, or `name`.
    pub object: String,
    pub version: u64,
}

/// Why a key waits; all fields are absent for a key at rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Standing {
    /// Since when it waits in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<Timestamp>,
    /// Since when its sync runs or the key is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processing: Option<Timestamp>,
    /// The versions and lists that caches must see before its next sync.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    #[serde(skip_serializing_if = "is_zero_u32")]
    pub failures: u32,
    /// When it is tried again after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
}

/// A version or list that a held key waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    pub resource: String,
    /// `version 4711`, `a lost creation`, `the first list`.
    pub until: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timer {
    pub due: Timestamp,
    /// Its purpose; `""` if it is for several events at once.
    pub purpose: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheState {
    /// As upstream prints it: `pods`, `replicasets.apps`.
    pub resource: String,
    /// The selectors and namespaces that are followed, as text; `""` for all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// Whether it was listed. A resource that is followed on demand is not listed while no object needs it.
    pub synced: bool,
    pub version: u64,
    /// When the apiserver last sent something: an event, a bookmark or a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Timestamp>,
    /// The error of the last list or watch, while it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
    /// The objects whose newest state cannot be decoded, with the error. An explanation has those of its object's
    /// namespace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorStatus {
    /// `deployment-operator`.
    pub operator: String,
    /// Upstream's name of the controller: `deployment-controller`.
    pub controller: String,
    pub version: String,
    /// The version of Kubernetes whose behaviour it has.
    pub kubernetes: String,
    pub role: Role,
    /// Its name in the Lease; `""` without an election.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identity: String,
    pub time: Timestamp,
    pub caches: Vec<CacheState>,
    pub queues: Vec<QueueState>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueState {
    pub name: String,
    /// How many keys wait to be taken.
    pub waiting: usize,
    /// Since when the longest-waiting key waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// How many keys are synced or held at the moment.
    pub processing: usize,
    /// How many keys failed last time.
    pub failing: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Failure>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub key: String,
    pub time: Timestamp,
    pub error: String,
}

/// The report of an operator that runs as a shadow, served under [`SHADOW_PATH`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowReport {
    /// `deployment-operator`.
    pub operator: String,
    pub version: String,
    pub time: Timestamp,
    /// Whether every cache is synced and every key that was there at the start was looked at.
    pub complete: bool,
    /// How many keys each queue has synced.
    pub looked_at: BTreeMap<String, u64>,
    /// How many keys would write about objects that have not come to rest.
    pub moving: u64,
    /// The writes that would still be made about objects that have come to rest.
    pub differences: Vec<Difference>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_differences: u64,
}

/// One write that a takeover would make although its object is at rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The queue whose key it is.
    pub queue: String,
    pub key: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// As upstream prints it: `pods`, `replicasets.apps`, with its subresource: `deployments.apps/status`.
    pub resource: String,
    /// `namespace/name`; of a creation under a generated name, its prefix.
    pub object: String,
    pub stages: Vec<Stage>,
    /// The fields in which the object differs from the write; none for a creation or a deletion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldDifference>,
    /// Since when the key would write it.
    pub since: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldDifference {
    /// `status.conditions[type=Available].reason`, as far as lists have names for their items.
    pub path: String,
    /// The object's value; null if it has none.
    pub has: Value,
    /// The value of the write; null to remove the field.
    pub wants: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero_u32(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests;
