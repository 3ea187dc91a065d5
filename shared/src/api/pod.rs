//! The meaning of a pod's status to a workload controller: active, ready, available, and first to be deleted.
//!
//! An operator's own view of a Pod implements [`PodView`]; the parts it is made of ([`Phase`], [`Conditions`],
//! [`DeletionCost`], [`Restarts`]) read themselves from the served JSON and keep a few bytes each.
//! Left out: conditions other than Ready and PodScheduled, container states, and everything of the spec but the node.

pub mod container;
pub mod creation;
pub mod disruption;
pub mod group;
pub mod ranking;
pub mod rejection;
pub mod volume;

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};

use crate::api::object::Object;
use crate::api::time::Time;

/// The field selector of pods that have not ended: those whose [`Phase`] is not terminal.
pub const LIVE: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The condition of a pod that something outside of it is about to end.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Phase {
    /// Accepted, not all containers started.
    Pending,
    Running,
    Succeeded,
    Failed,
    /// The node does not answer.
    Unknown,
    /// None, or one that this build does not know.
    #[default]
    #[serde(other)]
    Other,
}

impl Phase {
    /// Whether no container will ever run again.
    ///
    /// Upstream: `IsPodPhaseTerminal`, `pkg/api/v1/pod/util.go`.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// The condition is missing, or its status is not True.
    #[default]
    NotReady,
    Ready {
        since: Option<Time>,
    },
}

impl Readiness {
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Ready { .. })
    }

    /// Since when the pod is ready; `None` also for one that is ready without saying since when.
    pub const fn since(self) -> Option<Time> {
        match self {
            Self::NotReady | Self::Ready { since: None } => None,
            Self::Ready { since } => since,
        }
    }

    /// Whether the pod has been ready for `min_ready_seconds`.
    ///
    /// Upstream: `IsPodAvailable`, `pkg/api/v1/pod/util.go`.
    pub fn is_available(self, min_ready_seconds: i32, now: Timestamp) -> bool {
        match self {
            Self::NotReady => false,
            Self::Ready { .. } if min_ready_seconds == 0 => true,
            Self::Ready { since } => {
                since.is_some_and(|since| since.remaining(min_ready_seconds.into(), now).is_none())
            }
        }
    }

    /// When the pod will become available; `None` if it already is, or if that needs more than time.
    ///
    /// Upstream: `nextPodAvailabilityCheck`, `pkg/controller/controller_utils.go`.
    pub fn available_at(self, min_ready_seconds: i32, now: Timestamp) -> Option<Time> {
        let since = self.since().filter(|_| min_ready_seconds > 0)?;
        since.remaining(min_ready_seconds.into(), now)?;
        Some(Time::from_second(since.second().saturating_add(min_ready_seconds.into())))
    }
}

/// The conditions of a pod that count; read from `status.conditions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub readiness: Readiness,
    /// Whether the scheduler has found no node for it: the condition of type PodScheduled is False.
    pub is_unschedulable: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCondition<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(default)]
    last_transition_time: Option<Time>,
}

/// Of several conditions of one type the first counts.
impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Conditions;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("pod conditions")
            }
            fn visit_unit<E>(self) -> Result<Conditions, E> {
                Ok(Conditions::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut conditions: A) -> Result<Conditions, A::Error> {
                let (mut readiness, mut is_unschedulable) = (None, None);
                while let Some(condition) = conditions.next_element::<RawCondition<'de>>()? {
                    let RawCondition { r#type, status, last_transition_time: since } = condition;
                    match r#type.as_ref() {
                        "Ready" if status == "True" => _ = readiness.get_or_insert(Readiness::Ready { since }),
                        "Ready" => _ = readiness.get_or_insert(Readiness::NotReady),
                        "PodScheduled" => _ = is_unschedulable.get_or_insert(status == "False"),
                        _ => {}
                    }
                }
                Ok(Conditions {
                    readiness: readiness.unwrap_or_default(),
                    is_unschedulable: is_unschedulable.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The annotation `controller.kubernetes.io/pod-deletion-cost`: pods of lower cost are deleted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeletionCost(pub i32);

impl DeletionCost {
    pub const ANNOTATION: &'static str = "controller.kubernetes.io/pod-deletion-cost";

    /// Reads the annotation's value; a text that is no number, or starts with `+` or a needless `0`, counts as 0.
    ///
    /// Upstream: `GetDeletionCostFromPodAnnotations`, `pkg/apis/core/helper/helpers.go`.
    pub fn parse(text: &str) -> Self {
        let is_canonical = text == "0" || !text.starts_with(['+', '0']);
        Self(text.parse().ok().filter(|_| is_canonical).unwrap_or(0))
    }
}

impl<'de> Deserialize<'de> for DeletionCost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = DeletionCost;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DeletionCost, A::Error> {
                let mut cost = DeletionCost::default();
                while let Some(Str(key)) = map.next_key()? {
                    if key == DeletionCost::ANNOTATION {
                        cost = DeletionCost::parse(&map.next_value::<Str<'de>>()?.0);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(cost)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[derive(Deserialize)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);

/// The highest restart counts in a pod; more restarts are deleted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Restarts {
    pub containers: i32,
    pub sidecars: i32,
}

/// The fields that a view of a pod must have, and the questions they answer.
pub trait PodView: Object {
    fn phase(&self) -> Phase;

    fn readiness(&self) -> Readiness;

    /// Whether it counts as a replica: not ended, not being deleted.
    ///
    /// Upstream: `IsPodActive`, `pkg/controller/controller_utils.go`.
    fn is_active(&self) -> bool {
        !self.phase().is_terminal() && !self.meta().is_being_deleted()
    }

    /// Whether it is being deleted and has not ended yet.
    ///
    /// Upstream: `IsPodTerminating`, `pkg/controller/controller_utils.go`.
    fn is_terminating(&self) -> bool {
        !self.phase().is_terminal() && self.meta().is_being_deleted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ready_since(second: i64) -> Readiness {
        Readiness::Ready { since: Some(Time::from_second(second)) }
    }

    #[test]
    fn an_unknown_phase_is_no_error() {
        let phases = ["Pending", "Running", "Succeeded", "Failed", "Unknown", "Resized", ""];
        let read = phases.map(|phase| serde_json::from_value::<Phase>(phase.into()).unwrap());
        let known = [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed, Phase::Unknown];
        assert_eq!(read[..5], known);
        assert_eq!(read[5..], [Phase::Other, Phase::Other]);
    }

    #[test]
    fn readiness_is_the_ready_condition() {
        let read = |json: &str| serde_json::from_str::<Conditions>(json).unwrap().readiness;
        assert_eq!(read("null"), Readiness::NotReady);
        assert_eq!(read("[]"), Readiness::NotReady);
        assert_eq!(read(r#"[{"type":"Ready","status":"False"}]"#), Readiness::NotReady);
        assert_eq!(read(r#"[{"type":"Ready","status":"True"}]"#), Readiness::Ready { since: None });
        assert_eq!(
            read(
                r#"[{"type":"ContainersReady","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"},
                    {"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"1970-01-01T00:00:07Z"}]"#
            ),
            ready_since(7)
        );
    }

    #[test]
    fn a_pod_is_unschedulable_while_the_scheduler_has_found_no_node() {
        let read = |json: &str| serde_json::from_str::<Conditions>(json).unwrap().is_unschedulable;
        assert!(read(r#"[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]"#));
        assert!(read(r#"[{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"False"}]"#));
        for no_word_of_it in ["null", "[]", r#"[{"type":"PodScheduled","status":"True"}]"#, r#"[{"status":"False"}]"#] {
            assert!(!read(no_word_of_it), "{no_word_of_it}");
        }
    }

    /// Rows of upstream's `TestNextPodAvailabilityCheck`.
    #[test]
    fn availability_is_readiness_for_long_enough() {
        let check = |readiness: Readiness, min_ready_seconds, available, available_at: Option<i64>| {
            assert_eq!(readiness.is_available(min_ready_seconds, at(100)), available);
            let due = readiness.available_at(min_ready_seconds, at(100)).map(Time::second);
            assert_eq!(due, available_at);
        };
        check(Readiness::NotReady, 0, false, None);
        check(ready_since(100), 0, true, None);
        check(Readiness::Ready { since: None }, 0, true, None);
        check(Readiness::Ready { since: None }, 1, false, None);
        check(ready_since(100), 1, false, Some(101));
        check(ready_since(80), 30, false, Some(110));
        check(ready_since(50), 50, true, None);
        check(ready_since(49), 50, true, None);
        check(ready_since(100), i32::MAX, false, Some(100 + i64::from(i32::MAX)));
    }

    #[test]
    fn deletion_costs_are_canonical_numbers() {
        let check = |text: &str, cost: i32| assert_eq!(DeletionCost::parse(text), DeletionCost(cost), "{text:?}");
        check("10", 10);
        check("-10", -10);
        check("0", 0);
        check("2147483647", i32::MAX);
        for invalid in ["", "+10", "010", "1.5", "ten", "2147483648", "-", " 1", "00"] {
            check(invalid, 0);
        }
        // Upstream looks at the first character only.
        check("-01", -1);
    }

    #[test]
    fn only_the_deletion_cost_is_read_from_annotations() {
        let json = format!(r#"{{"a":"9","{}":"7","b\n":"8"}}"#, DeletionCost::ANNOTATION);
        assert_eq!(serde_json::from_str::<DeletionCost>(&json).unwrap(), DeletionCost(7));
        assert_eq!(serde_json::from_str::<DeletionCost>("{}").unwrap(), DeletionCost(0));
    }
}
