//! The views of nodes, of their Leases and of their pods.
//!
//! Times in Leases and conditions come from the node's own clock, which may be wrong, so they are only compared with
//! their former values.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use shared::api::condition::{FALSE, TRUE, UNKNOWN};
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::{LEASES, NODES, PODS};
use shared::api::taint::{self, KnownTaint, ServedTaint};
use shared::api::time::Time;

pub const NODE_LEASES: &str = "kube-node-lease";

/// The condition for the readiness of a node, or of a pod.
pub const READY: &str = "Ready";
const MEMORY_PRESSURE: &str = "MemoryPressure";
const DISK_PRESSURE: &str = "DiskPressure";
const PID_PRESSURE: &str = "PIDPressure";
const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";
/// The conditions that a kubelet keeps; network plugins keep that of the network.
pub const OF_KUBELET: [&str; 4] = [READY, MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE];

/// The reason in the conditions of a node whose kubelet has stopped.
pub const STATUS_UNKNOWN: &str = "NodeStatusUnknown";
/// The reason in the conditions of a node whose kubelet has never started.
pub const NEVER_UPDATED: &str = "NodeStatusNeverUpdated";

/// The taint for a status of a condition.
///
/// Upstream: `nodeConditionToTaintKeyStatusMap`, `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
const TAINT_OF: [(&str, &str, &str); 6] = [
    (READY, FALSE, taint::NOT_READY),
    (READY, UNKNOWN, taint::UNREACHABLE),
    (MEMORY_PRESSURE, TRUE, taint::MEMORY_PRESSURE),
    (DISK_PRESSURE, TRUE, taint::DISK_PRESSURE),
    (NETWORK_UNAVAILABLE, TRUE, taint::NETWORK_UNAVAILABLE),
    (PID_PRESSURE, TRUE, taint::PID_PRESSURE),
];

/// Labels, and the deprecated labels with the same value, which some clients still read.
///
/// Upstream: `labelReconcileInfo`.
const OLDER_LABELS: [(&str, &str); 2] =
    [("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch")];

/// A node with this label does not count in its zone.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    pub metadata: Meta,
    pub unschedulable: bool,
    pub taints: Box<[ServedTaint]>,
    pub conditions: Box<[Condition]>,
}

shared::view!(Node, NODES);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub type_: Text,
    pub status: Text,
    pub reason: Text,
    /// When the kubelet wrote it, by the node's clock.
    pub heartbeat: Option<Time>,
    pub transition: Option<Time>,
}

impl Condition {
    /// Whether a controller set it to Unknown; a kubelet does not write these reasons.
    pub fn is_by_us(&self) -> bool {
        self.status == *UNKNOWN && [STATUS_UNKNOWN, NEVER_UPDATED].iter().any(|reason| self.reason == **reason)
    }
}

/// The status of the condition [`READY`] of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ready {
    Missing,
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`.
    Unknown,
    Odd,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawLease")]
pub struct Lease {
    pub metadata: Meta,
    /// When the kubelet renewed it, by the node's clock.
    pub renewed: Option<Timestamp>,
}

shared::view!(Lease, LEASES);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub metadata: Meta,
    /// Whether it has a condition [`READY`] that is not False.
    pub may_be_ready: bool,
}

shared::view!(Pod, PODS);

impl Node {
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == *type_)
    }

    /// The status of its condition [`READY`].
    pub fn ready(&self) -> Ready {
        match self.condition(READY).map(|ready| ready.status.as_str()) {
            None => Ready::Missing,
            Some(TRUE) => Ready::True,
            Some(FALSE) => Ready::False,
            Some(UNKNOWN) => Ready::Unknown,
            Some(_) => Ready::Odd,
        }
    }

    /// Whether its kubelet stopped, by its conditions.
    pub fn is_lost(&self) -> bool {
        self.condition(READY).is_some_and(|ready| ready.status == *UNKNOWN && ready.reason == *STATUS_UNKNOWN)
    }

    pub fn has(&self, taint: KnownTaint) -> bool {
        self.taints.iter().any(|served| taint.is(&served.taint))
    }

    /// The `NoSchedule` taints that its conditions and its spec ask for.
    ///
    /// Upstream: `doNoScheduleTaintingPass`.
    pub fn asked_for(&self) -> Vec<KnownTaint> {
        let holds = |type_: &str, status: &str| self.condition(type_).is_some_and(|is| is.status == *status);
        let by_conditions = TAINT_OF.iter().filter(|(type_, status, _)| holds(type_, status)).map(|(.., key)| *key);
        let cordoned = self.unschedulable.then_some(taint::UNSCHEDULABLE);
        by_conditions.chain(cordoned).map(KnownTaint::no_schedule).collect()
    }

    pub fn kept_from_pods(&self) -> Vec<KnownTaint> {
        let keys = TAINT_OF.iter().map(|(.., key)| *key).chain([taint::UNSCHEDULABLE]);
        keys.map(KnownTaint::no_schedule).filter(|taint| self.has(*taint)).collect()
    }

    /// The deprecated labels that are missing or wrong, with their values.
    ///
    /// Upstream: `reconcileNodeLabels`.
    pub fn stale_labels(&self) -> Vec<(&'static str, Text)> {
        let labels = &self.metadata.labels;
        let stale = OLDER_LABELS.iter().filter_map(|(label, older)| {
            let value = labels.get(label)?;
            (labels.get(older) != Some(value)).then(|| (*older, Text::new(value)))
        });
        stale.collect()
    }

    /// Whether it counts in its zone.
    ///
    /// Upstream: `isNodeExcludedFromDisruptionChecks`.
    pub fn counts(&self) -> bool {
        self.metadata.labels.get(EXCLUDED).is_none()
    }

    /// Its zone; `""` without one.
    ///
    /// Upstream: `GetZoneKey`, `staging/src/k8s.io/component-helpers/node/topology/helpers.go`.
    pub fn zone(&self) -> Text {
        let labels = &self.metadata.labels;
        let region = either(labels, "failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region");
        let zone = either(labels, "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone");
        if region.is_empty() && zone.is_empty() { Text::default() } else { Text::new(&format!("{region}:\0:{zone}")) }
    }
}

fn either<'a>(labels: &'a Labels, older: &str, newer: &str) -> &'a str {
    labels.get(older).or_else(|| labels.get(newer)).unwrap_or_default()
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "without a status",
            Self::True => "ready",
            Self::False => "not ready",
            Self::Unknown => "unknown",
            Self::Odd => "with an invalid status",
        })
    }
}

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawNodeSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawNodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawNodeSpec {
    #[serde(deserialize_with = "null_as_default")]
    unschedulable: bool,
    #[serde(deserialize_with = "null_as_default")]
    taints: Box<[ServedTaint]>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawNodeStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<RawCondition>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCondition {
    #[serde(rename = "type")]
    type_: Text,
    status: Text,
    reason: Text,
    last_heartbeat_time: Option<Time>,
    last_transition_time: Option<Time>,
}

impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec, status }: RawNode) -> Self {
        let is_read = |type_: &Text| TAINT_OF.iter().any(|(read, ..)| *type_ == **read);
        let conditions = status.conditions.into_iter().filter(|condition| is_read(&condition.type_));
        let condition = |raw: RawCondition| {
            let RawCondition { type_, status, reason, last_heartbeat_time, last_transition_time } = raw;
            Condition { type_, status, reason, heartbeat: last_heartbeat_time, transition: last_transition_time }
        };
        Self {
            metadata,
            unschedulable: spec.unschedulable,
            taints: spec.taints,
            conditions: conditions.map(condition).collect(),
        }
    }
}

#[derive(Deserialize)]
struct RawLease {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawLeaseSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawLeaseSpec {
    renew_time: Option<Timestamp>,
}

impl From<RawLease> for Lease {
    fn from(RawLease { metadata, spec }: RawLease) -> Self {
        Self { metadata, renewed: spec.renew_time }
    }
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawPodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawPodStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<RawPodCondition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawPodCondition {
    #[serde(rename = "type")]
    type_: Text,
    status: Text,
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, status }: RawPod) -> Self {
        let ready = status.conditions.iter().find(|condition| condition.type_ == *READY);
        Self { metadata, may_be_ready: ready.is_some_and(|ready| ready.status != *FALSE) }
    }
}
