//! The views of pods and nodes: the taints of a node that end pods, and the tolerations of a pod for such taints.
//!
//! Left out: taints and tolerations of other effects, the time when a taint was added, which upstream does not read
//! here, and the health of a node: another controller watches it, and taints the node.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use shared::api::condition::{Condition, TRUE};
use shared::api::intern::{Interner, Text};
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::{NODES, PODS};

/// The condition of a pod that something outside of it ends.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// The reason in that condition.
pub const DELETION_BY_TAINT_MANAGER: &str = "DeletionByTaintManager";
/// The message in that condition.
pub const DELETION_MESSAGE: &str = "Taint manager: deleting due to NoExecute taint";

/// The taints that node-lifecycle-controller puts on a node that does not seem to be ready.
const OF_HEALTH: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
/// The effect of a taint that ends pods.
const NO_EXECUTE: &str = "NoExecute";

/// A node.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    /// Its metadata.
    pub metadata: Meta,
    /// Those of its taints that end pods.
    pub taints: Vec<Taint>,
}

impl Node {
    /// Whether pods may have to leave it.
    pub fn ends_pods(&self) -> bool {
        !self.taints.is_empty()
    }

    /// Whether one of its taints comes from its health.
    pub fn is_tainted_for_health(&self) -> bool {
        self.taints.iter().any(Taint::is_for_health)
    }
}

shared::view!(Node, NODES);

/// A taint that ends pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: Text,
    /// Its value; mostly `""`.
    pub value: Text,
}

impl Taint {
    /// Whether it comes from the node's health, and not from a user.
    pub fn is_for_health(&self) -> bool {
        OF_HEALTH.contains(&self.key.as_str())
    }
}

/// A pod.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    /// Its metadata.
    pub metadata: Meta,
    /// The node that it is bound to; `""` for none.
    pub node: Text,
    /// Its tolerations for taints that end pods. Most pods have the same ones.
    pub tolerations: Arc<[Toleration]>,
    /// Whether it is marked already.
    pub disruption: Disruption,
}

shared::view!(Pod, PODS);

/// The condition [`DISRUPTION_TARGET`] of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// It is not there, or not True.
    No,
    /// It is True, and for another reason.
    ForAnotherReason,
    /// It says that a taint ends the pod.
    ByTaint,
}

/// A toleration of taints that end pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// The key of the taints; `""` for any.
    pub key: Text,
    /// The values of the taints.
    pub values: Values,
    /// For how many seconds; none is for ever.
    pub seconds: Option<i64>,
}

/// The values of the taints that a toleration is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Values {
    /// Any.
    Any,
    /// This one.
    Is(Text),
    /// Numbers below this.
    Below(i64),
    /// Numbers above this.
    Above(i64),
}

static TOLERATIONS: LazyLock<Interner<[Toleration]>> = LazyLock::new(Interner::new);

impl Toleration {
    /// Whether it is about this taint.
    ///
    /// Upstream: `ToleratesTaint`, staging/src/k8s.io/api/core/v1/toleration.go. There numbers are compared only if the
    /// feature gate `TaintTolerationComparisonOperators` is on.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let has_key = self.key.is_empty() || self.key == taint.key;
        has_key
            && match &self.values {
                Values::Any => true,
                Values::Is(value) => *value == taint.value,
                Values::Below(limit) => number(&taint.value).is_some_and(|value| value < *limit),
                Values::Above(limit) => number(&taint.value).is_some_and(|value| value > *limit),
            }
    }
}

/// A whole number as Go prints it: `+1`, `01` and `-0` are none.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

/// As `kubectl` prints it, without the effect.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value } = self;
        if value.is_empty() { write!(f, "{key}") } else { write!(f, "{key}={value}") }
    }
}

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawNodeSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawNodeSpec {
    #[serde(deserialize_with = "null_as_default")]
    taints: Vec<RawTaint>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawTaint {
    key: Text,
    value: Text,
    effect: Text,
}

/// Upstream: `getNoExecuteTaints`, `pkg/controller/tainteviction/taint_eviction.go`.
impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec }: RawNode) -> Self {
        let taints = spec.taints.into_iter().filter(|taint| taint.effect == NO_EXECUTE);
        Self { metadata, taints: taints.map(|RawTaint { key, value, effect: _ }| Taint { key, value }).collect() }
    }
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawPodSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawPodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPodSpec {
    #[serde(deserialize_with = "null_as_default")]
    node_name: Text,
    #[serde(deserialize_with = "null_as_default")]
    tolerations: Vec<RawToleration>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawToleration {
    key: Text,
    operator: Text,
    value: Text,
    effect: Text,
    toleration_seconds: Option<i64>,
}

impl RawToleration {
    /// None if it tolerates no taint that ends pods.
    fn read(self) -> Option<Toleration> {
        let Self { key, operator, value, effect, toleration_seconds } = self;
        if !effect.is_empty() && effect != NO_EXECUTE {
            return None;
        }
        let values = match operator.as_str() {
            "" | "Equal" => Values::Is(value),
            "Exists" => Values::Any,
            "Lt" => Values::Below(number(&value)?),
            "Gt" => Values::Above(number(&value)?),
            _ => return None,
        };
        Some(Toleration { key, values, seconds: toleration_seconds })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawPodStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

impl Disruption {
    /// Upstream: `UpdatePodCondition`, `pkg/api/v1/pod/util.go`, which compares the new condition with the old one.
    fn of(conditions: &[Condition]) -> Self {
        let known = conditions.iter().find(|condition| condition.type_ == DISRUPTION_TARGET);
        let Some(known) = known.filter(|known| known.status == TRUE) else { return Self::No };
        if known.reason == DELETION_BY_TAINT_MANAGER && *known.message == *DELETION_MESSAGE {
            Self::ByTaint
        } else {
            Self::ForAnotherReason
        }
    }
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec, status }: RawPod) -> Self {
        let tolerations: Vec<Toleration> = spec.tolerations.into_iter().filter_map(RawToleration::read).collect();
        Self {
            metadata,
            node: spec.node_name,
            tolerations: TOLERATIONS.intern(tolerations.as_slice()),
            disruption: Disruption::of(&status.conditions),
        }
    }
}
