//! The status of an owner as the server stores it, and whether another one would change it.
//!
//! Left out: the counts, which are `status`'s.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::api::condition::Condition;
use crate::api::intern::Text;
use crate::api::object::ResourceVersion;

/// `status` of a ReplicaSet or a ReplicationController; written as the whole of what these controllers own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaStatus {
    /// How many pods are active and claimed.
    pub replicas: i32,
    /// How many of these carry all labels of the template.
    pub fully_labeled_replicas: i32,
    /// How many of these are ready.
    pub ready_replicas: i32,
    /// How many of these have been ready for minReadySeconds.
    pub available_replicas: i32,
    /// How many own pods are being deleted; ReplicationControllers do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating_replicas: Option<i32>,
    pub observed_generation: i64,
    pub conditions: Conditions,
}

#[derive(Clone, Debug, Default)]
pub struct Conditions(Vec<(Text, Box<RawValue>)>);

impl Conditions {
    /// The types, in order.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(type_, _)| type_.as_str())
    }

    pub fn has(&self, type_: &str) -> bool {
        self.types().any(|known| known == type_)
    }

    pub(super) fn remove(&mut self, type_: &str) {
        self.0.retain(|(known, _)| *known != *type_);
    }

    pub(super) fn push(&mut self, condition: &Condition) {
        if let Ok(json) = serde_json::value::to_raw_value(condition) {
            self.0.push((condition.type_.clone(), json));
        }
    }
}

impl PartialEq for Conditions {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|(_, json)| json.get()).eq(other.0.iter().map(|(_, json)| json.get()))
    }
}

/// As `null` if there are none, as the apiserver leaves them out.
impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [] => serializer.serialize_none(),
            conditions => serializer.collect_seq(conditions.iter().map(|(_, json)| json)),
        }
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Typed {
            r#type: Text,
        }
        let conditions: Option<Vec<Box<RawValue>>> = Deserialize::deserialize(deserializer)?;
        let typed = |json: Box<RawValue>| {
            let Typed { r#type } = serde_json::from_str(json.get()).map_err(serde::de::Error::custom)?;
            Ok((r#type, json))
        };
        conditions.unwrap_or_default().into_iter().map(typed).collect::<Result<_, _>>().map(Self)
    }
}

/// Whether `next` says anything that the server would keep beside what it has `stored`.
///
/// A server that is older, or whose feature `DeploymentReplicaSetTerminatingReplicas` is off, drops
/// terminatingReplicas. Upstream asks its own feature gate, and where that is on and the server's off, writes at each
/// sync.
pub(super) fn is_news(stored: &ReplicaStatus, next: &ReplicaStatus, drops_terminating: bool) -> bool {
    if !drops_terminating || stored.terminating_replicas.is_some() {
        return stored != next;
    }
    *stored != ReplicaStatus { terminating_replicas: None, ..next.clone() }
}

/// Whether the server drops terminatingReplicas, as far as is `known` after a write: it does if a write that was to set
/// it changed nothing, and until it is seen.
pub(super) fn drops_terminating(
    known: bool,
    stored: (ResourceVersion, &ReplicaStatus),
    written: (ResourceVersion, &ReplicaStatus),
) -> bool {
    let ((before, stored), (after, written)) = (stored, written);
    let is_dropped = before == after && written.terminating_replicas.is_some();
    stored.terminating_replicas.is_none() && (known || is_dropped)
}

/// Whether `next` has nothing new but counts on the way to the end state: more pods, while some of those `wanted` are not
/// available yet, or other terminating ones, while some are left. Counts that fall never wait: a controller that relies on
/// higher ones may take too many pods away.
pub(super) fn is_in_between(stored: &ReplicaStatus, next: &ReplicaStatus, wanted: usize) -> bool {
    let counts = |status: &ReplicaStatus| {
        [status.replicas, status.fully_labeled_replicas, status.ready_replicas, status.available_replicas]
    };
    let (before, after) = (counts(stored), counts(next));
    let goes_on = if before == after {
        next.terminating_replicas.is_some_and(|count| count > 0)
    } else {
        usize::try_from(next.available_replicas).unwrap_or(0) < wanted
    };
    goes_on
        && before.iter().zip(after).all(|(before, after)| *before <= after)
        && (stored.observed_generation, &stored.conditions) == (next.observed_generation, &next.conditions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(replicas: i32, terminating: Option<i32>) -> ReplicaStatus {
        ReplicaStatus {
            replicas,
            terminating_replicas: terminating,
            observed_generation: 1,
            ..ReplicaStatus::default()
        }
    }

    #[test]
    fn counts_are_in_between_until_the_last_pod_has_come_or_gone() {
        let stored = status(3, Some(2));
        let newer = ReplicaStatus { observed_generation: 2, ..stored.clone() };
        for (next, wanted, expected) in [
            (status(4, Some(2)), 1, true),
            (status(4, Some(2)), 0, false),
            (status(3, Some(1)), 0, true),
            (status(3, Some(0)), 0, false),
            (status(3, Some(0)), 1, false),
            (status(2, Some(3)), 1, false),
            (newer, 1, false),
        ] {
            assert_eq!(is_in_between(&stored, &next, wanted), expected, "{next:?} of {wanted}");
        }
    }

    #[test]
    fn a_field_that_the_server_drops_is_no_news() {
        for (stored, next, keeps, drops) in [
            (status(1, Some(0)), status(1, Some(0)), false, false),
            (status(1, None), status(1, Some(0)), true, false),
            (status(1, None), status(1, Some(2)), true, false),
            (status(1, None), status(2, Some(0)), true, true),
            // It is there: the server keeps it by now.
            (status(1, Some(0)), status(1, Some(1)), true, true),
            (status(1, None), status(1, None), false, false),
        ] {
            let news = [false, true].map(|drops| is_news(&stored, &next, drops));
            assert_eq!(news, [keeps, drops], "{stored:?} {next:?}");
        }
    }

    #[test]
    fn a_write_that_changes_nothing_shows_what_the_server_drops() {
        let (none, some) = (status(1, None), status(1, Some(0)));
        for (known, stored, written, versions, expected) in [
            (false, &none, &some, [5, 5], true),
            (false, &none, &some, [5, 6], false),
            (true, &none, &some, [5, 6], true),
            (true, &some, &some, [5, 6], false),
            (false, &some, &some, [5, 5], false),
            (false, &none, &none, [5, 5], false),
        ] {
            let [before, after] = versions.map(ResourceVersion);
            let drops = drops_terminating(known, (before, stored), (after, written));
            assert_eq!(drops, expected, "{known} {stored:?} {written:?} {versions:?}");
        }
    }
}
