//! A namespace as cached (its metadata) and as read live (with every field, so that a write keeps unknown ones), and what
//! remains in it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use shared::api::object::{Key, ResourceVersion, Uid};
use shared::api::resource::Resource;
use shared::api::time::Time;

pub use shared::api::namespace::Namespace;

/// The finalizer of `spec.finalizers` that this operator removes when the namespace is empty.
pub const KUBERNETES: &str = "kubernetes";

/// The phase of a namespace that is being deleted.
pub const TERMINATING: &str = "Terminating";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct LiveNamespace(pub Value);

impl LiveNamespace {
    fn at(&self, path: &str) -> Option<&Value> {
        self.0.pointer(path)
    }

    fn text(&self, path: &str) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    pub fn key(&self) -> Key {
        Key::new("", self.name())
    }

    pub fn uid(&self) -> Uid {
        Uid::parse(self.text("/metadata/uid"))
    }

    pub fn deletion(&self) -> Option<Time> {
        self.at("/metadata/deletionTimestamp").and_then(|time| Time::deserialize(time).ok())
    }

    pub fn phase(&self) -> &str {
        self.text("/status/phase")
    }

    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        let finalizers = self.at("/spec/finalizers").and_then(Value::as_array);
        finalizers.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Stores the version after a write.
    pub fn set_version(&mut self, version: ResourceVersion) {
        self.0["metadata"]["resourceVersion"] = version.to_string().into();
    }
}

#[derive(Debug, Default, Deserialize)]
pub struct Item {
    #[serde(default)]
    pub metadata: ItemMeta,
}

/// The metadata of an [`Item`].
#[derive(Debug, Default, Deserialize)]
pub struct ItemMeta {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub uid: String,
    #[serde(default)]
    pub finalizers: Option<Vec<String>>,
}

/// The fields of a pod that say how long it may take to end.
#[derive(Debug, Default, Deserialize)]
pub struct Pod {
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default)]
    termination_grace_period_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: String,
}

impl Pod {
    /// The seconds it may take to end; 0 if it has ended.
    pub fn grace_seconds(&self) -> i64 {
        match self.status.phase.as_str() {
            "Succeeded" | "Failed" => 0,
            _ => self.spec.termination_grace_period_seconds.unwrap_or(0),
        }
    }
}

/// The result of deleting the objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emptied {
    pub resource: Resource,
    /// How many seconds the remaining objects may take.
    pub estimate_seconds: i64,
    /// How many objects remain.
    pub remaining: usize,
    /// How many of them have each finalizer.
    pub finalizers: BTreeMap<String, usize>,
    pub error: Option<String>,
}

impl Emptied {
    /// A kind without known remaining objects.
    pub fn nothing(resource: Resource) -> Self {
        Self { resource, estimate_seconds: 0, remaining: 0, finalizers: BTreeMap::new(), error: None }
    }
}

/// The result of one round over all kinds of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Why not all kinds are known.
    pub undiscovered: Option<String>,
    pub pods: Option<Emptied>,
    /// The results for the other kinds; empty while pods remain.
    pub others: Vec<Emptied>,
}

impl Round {
    /// Whether pods remain: the other kinds wait for them.
    pub fn waits_for_pods(&self) -> bool {
        self.pods.as_ref().is_some_and(|pods| pods.remaining > 0)
    }

    pub fn kinds(&self) -> impl Iterator<Item = &Emptied> {
        self.pods.iter().chain(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_its_grace_until_it_has_ended() {
        let grace = |phase: &str, seconds: &str| {
            let json = format!(
                r#"{{"spec":{{"terminationGracePeriodSeconds":{seconds},"x":1}},"status":{{"phase":"{phase}"}}}}"#
            );
            serde_json::from_str::<Pod>(&json).unwrap().grace_seconds()
        };
        for phase in ["Pending", "Running", "Unknown", ""] {
            assert_eq!((grace(phase, "30"), grace(phase, "null")), (30, 0));
        }
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(grace(phase, "30"), 0);
        }
        assert_eq!(serde_json::from_str::<Pod>("{}").unwrap().grace_seconds(), 0);
    }
}
