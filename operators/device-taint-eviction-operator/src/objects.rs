//! The views of claims, slices, rules and pods: allocated devices, their `NoExecute` taints, and who uses them.

mod claim;
mod pod;
mod rule;
mod slice;

use std::fmt;

use shared::api::intern::Text;
use shared::api::taint::{Taint, TaintEffect};
use shared::api::time::Time;

pub use claim::{AllocatedDevice, Consumer, RESOURCE_CLAIMS, ResourceClaim};
pub use pod::{ClaimReference, DELETION_BY_DEVICE_TAINT_MANAGER, Pod};
pub use rule::{
    COMPLETED, DEVICE_TAINT_RULES, DeviceSelector, DeviceTaintRule, EVICTION_IN_PROGRESS, EvictionInProgress,
    NO_EFFECT, RuleEffect,
};
pub use slice::{Pool, RESOURCE_SLICES, ResourceSlice, TaintedDevice};

/// A device as claims name it; its name is its own within its pool only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceId {
    pub pool: Pool,
    pub device: Text,
}

/// A taint with the effect `NoExecute`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTaint {
    pub taint: Taint,
    /// The apiserver sets it where it is missing.
    pub added: Option<Time>,
}

impl DeviceTaint {
    fn new(key: Text, value: Text, added: Option<Time>) -> Self {
        Self { taint: Taint { key, value, effect: TaintEffect::NoExecute }, added }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, device } = self;
        write!(f, "{pool}/{device}")
    }
}
