//! A DeviceTaintRule: a taint of the devices that it selects, and the condition that reports its effect.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::time::Time;

use super::{DeviceId, DeviceTaint};

pub const DEVICE_TAINT_RULES: Resource =
    Resource::cluster_scoped("resource.k8s.io", "v1beta2", "DeviceTaintRule", "devicetaintrules");

/// The type of the condition. Upstream: `DeviceTaintConditionEvictionInProgress`.
pub const EVICTION_IN_PROGRESS: &str = "EvictionInProgress";
/// The reason of that condition once it says what a rule with the effect None would do.
pub const NO_EFFECT: &str = "NoEffect";
/// Its reason once the pods of a rule with the effect NoExecute are gone.
pub const COMPLETED: &str = "Completed";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawRule")]
pub struct DeviceTaintRule {
    pub metadata: Meta,
    /// A rule without one selects nothing.
    pub selector: Option<DeviceSelector>,
    pub effect: RuleEffect,
    /// The taint of its devices if the effect is `NoExecute`, and as it would be with that effect if not.
    pub taint: DeviceTaint,
    pub condition: Option<EvictionInProgress>,
}

shared::view!(DeviceTaintRule, DEVICE_TAINT_RULES);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RuleEffect {
    NoExecute,
    None,
    /// One that evicts no pods.
    #[default]
    #[serde(other)]
    Other,
}

/// The devices that match all of these, as far as given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceSelector {
    pub driver: Option<Text>,
    pub pool: Option<Text>,
    pub device: Option<Text>,
}

/// The condition EvictionInProgress.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionInProgress {
    #[serde(default)]
    pub status: Text,
    #[serde(default)]
    pub reason: Text,
    #[serde(default)]
    pub message: Box<str>,
    #[serde(default)]
    pub observed_generation: i64,
    /// When anything of it changed last.
    #[serde(default)]
    pub last_transition_time: Option<Time>,
}

impl DeviceTaintRule {
    /// Upstream: `ruleMatchesDevice`, `pkg/controller/devicetainteviction/device_taint_eviction.go`.
    pub fn selects(&self, id: &DeviceId) -> bool {
        let is = |wanted: &Option<Text>, name: &Text| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let DeviceId { pool, device } = id;
        self.selector.as_ref().is_some_and(|selector| {
            is(&selector.driver, &pool.driver) && is(&selector.pool, &pool.name) && is(&selector.device, device)
        })
    }

    pub fn evicts_pods(&self) -> bool {
        self.effect == RuleEffect::NoExecute
    }

    /// Whether its condition is about its present spec.
    pub fn is_reported(&self) -> bool {
        self.condition.as_ref().is_some_and(|known| known.observed_generation == self.metadata.generation)
    }

    /// Whether its condition has this reason.
    pub fn has_reason(&self, reason: &str) -> bool {
        self.condition.as_ref().is_some_and(|known| known.reason == *reason)
    }

    /// Whether its condition has to say what it would do, which is said once for each generation.
    pub fn is_to_be_simulated(&self) -> bool {
        self.effect == RuleEffect::None && !(self.is_reported() && self.has_reason(NO_EFFECT))
    }

    /// Whether pods that use its devices matter.
    pub fn concerns_pods(&self) -> bool {
        self.evicts_pods() || self.is_to_be_simulated()
    }

    pub fn has_spec_of(&self, other: &Self) -> bool {
        let Self { metadata: _, selector, effect, taint, condition: _ } = self;
        (selector, effect, taint) == (&other.selector, &other.effect, &other.taint)
    }
}

#[derive(Deserialize)]
struct RawRule {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    device_selector: Option<DeviceSelector>,
    #[serde(deserialize_with = "null_as_default")]
    taint: RawTaint,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTaint {
    key: Text,
    value: Text,
    effect: RuleEffect,
    time_added: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<RawCondition>,
}

#[derive(Deserialize)]
struct RawCondition {
    #[serde(rename = "type", default)]
    type_: Text,
    #[serde(flatten)]
    condition: EvictionInProgress,
}

impl From<RawRule> for DeviceTaintRule {
    fn from(RawRule { metadata, spec, status }: RawRule) -> Self {
        let RawSpec { device_selector: selector, taint: RawTaint { key, value, effect, time_added } } = spec;
        let own = status.conditions.into_iter().find(|known| known.type_ == *EVICTION_IN_PROGRESS);
        let condition = own.map(|known| known.condition);
        Self { metadata, selector, effect, taint: DeviceTaint::new(key, value, time_added), condition }
    }
}
