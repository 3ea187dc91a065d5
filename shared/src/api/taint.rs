//! Taints, by which nodes keep pods away or end them, and tolerations, by which pods stay.
//!
//! Left out: `timeAdded`, which nobody reads, and lists: each view keeps the taints and tolerations that matter to it.

mod served;

use std::fmt;

use serde::Deserialize;

use crate::api::intern::Text;
pub use served::{ServedTaint, taints_spec};

// The keys that controllers know. Upstream: staging/src/k8s.io/api/core/v1/well_known_taints.go, without the `TaintNode`
// in front of each name.

/// The node is not well, as its kubelet says.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The node is not heard of.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
pub const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
/// The node runs out of room on its disks.
pub const DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
/// The node has no network yet.
pub const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";
pub const PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";
/// The node has failed for good, as a person says.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// A taint of a node; read from `spec.taints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Taint {
    pub key: Text,
    /// Its value; mostly `""`.
    pub value: Text,
    pub effect: TaintEffect,
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum TaintEffect {
    /// None. In a toleration it stands for all.
    #[default]
    #[serde(rename = "")]
    Unset,
    NoSchedule,
    /// New ones come if there is no better node.
    PreferNoSchedule,
    /// Those that are there go, too.
    NoExecute,
    /// One that this build does not know.
    #[serde(other)]
    Other,
}

impl TaintEffect {
    /// As the API writes it; `""` also for one that this build does not know, and never writes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
            Self::Unset | Self::Other => "",
        }
    }
}

/// A taint that a controller knows: of a key and an effect a node has one at most, whatever its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownTaint {
    pub key: &'static str,
    pub effect: TaintEffect,
}

impl KnownTaint {
    /// The taint of this key by which no new pods come.
    pub const fn no_schedule(key: &'static str) -> Self {
        Self { key, effect: TaintEffect::NoSchedule }
    }

    /// The taint of this key by which pods have to leave.
    pub const fn no_execute(key: &'static str) -> Self {
        Self { key, effect: TaintEffect::NoExecute }
    }

    /// Whether a taint of a node is this one.
    ///
    /// Upstream: `MatchTaint`, `staging/src/k8s.io/api/core/v1/taint.go`.
    pub fn is(self, taint: &Taint) -> bool {
        taint.key == *self.key && taint.effect == self.effect
    }
}

/// A toleration of a pod; read from `spec.tolerations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The key of the taints; `""` for any.
    pub key: Text,
    /// How the values of the taints compare with its own.
    pub operator: TolerationOperator,
    pub value: Text,
    /// The effect of the taints; [`TaintEffect::Unset`] for any.
    pub effect: TaintEffect,
    /// For how many seconds pods stay; none is for ever.
    #[serde(rename = "tolerationSeconds")]
    pub seconds: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum TolerationOperator {
    #[default]
    #[serde(alias = "")]
    Equal,
    Exists,
    /// They are lower numbers.
    Lt,
    Gt,
    /// One that this build does not know: no taint is tolerated.
    #[serde(other)]
    Other,
}

impl Toleration {
    /// Whether it is about this taint, for however long.
    ///
    /// Upstream: `ToleratesTaint`, `staging/src/k8s.io/api/core/v1/toleration.go`. There numbers are compared only with the
    /// feature gate `TaintTolerationComparisonOperators`; here the gate is the apiserver's alone, which refuses `Lt` and
    /// `Gt` without it.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let has_effect = self.effect == TaintEffect::Unset || self.effect == taint.effect;
        let has_key = self.key.is_empty() || self.key == taint.key;
        has_effect
            && has_key
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Lt => self.compares(taint, |value, limit| value < limit),
                TolerationOperator::Gt => self.compares(taint, |value, limit| value > limit),
                TolerationOperator::Other => false,
            }
    }

    /// Upstream: `compareNumericValues`.
    fn compares(&self, taint: &Taint, holds: impl Fn(i64, i64) -> bool) -> bool {
        number(&taint.value).zip(number(&self.value)).is_some_and(|(value, limit)| holds(value, limit))
    }
}

/// A whole number as Go prints it: `+1`, `01` and `-0` are none.
///
/// Upstream: `IsDecimalInteger`, `staging/src/k8s.io/apimachinery/pkg/api/validate/content/decimal_int.go`.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

/// As `kubectl` prints it. Upstream: `ToString`, `staging/src/k8s.io/api/core/v1/taint.go`.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect } = self;
        match (value.as_str(), effect.as_str()) {
            ("", "") => write!(f, "{key}"),
            ("", effect) => write!(f, "{key}:{effect}"),
            (value, effect) => write!(f, "{key}={value}:{effect}"),
        }
    }
}

/// As `kubectl` prints it.
impl fmt::Display for KnownTaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, effect } = self;
        write!(f, "{key}:{}", effect.as_str())
    }
}

#[cfg(test)]
mod tests;
