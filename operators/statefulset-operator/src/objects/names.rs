//! Names and ordinals of pods and their volume claims.
//!
//! Upstream: `pkg/controller/statefulset/stateful_set_utils.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::StatefulSet;
use super::pod::Pod;

/// The most pods that one sync makes; the next one goes on when these were seen.
pub const MISSING_MAX: usize = 500;

/// The name before the last dash, and the number behind it; none where no number is there. The number is -1 where it is
/// too large for an ordinal.
///
/// Upstream: `getParentNameAndOrdinal`.
pub fn parent_and_ordinal(name: &str) -> Option<(&str, i64)> {
    let (parent, digits) = name.rsplit_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (parent, digits.parse::<i32>().map_or(-1, i64::from)))
}

/// The pod's place; -1 if its name has none.
///
/// Upstream: `getOrdinal`.
pub fn ordinal(pod: &Pod) -> i64 {
    parent_and_ordinal(pod.metadata.name()).map_or(-1, |(_, ordinal)| ordinal)
}

/// Whether the name says that it is one of the set's.
///
/// Upstream: `isMemberOf`.
pub fn is_member_of(set: &StatefulSet, pod: &Pod) -> bool {
    parent_and_ordinal(pod.metadata.name()).is_some_and(|(parent, _)| parent == set.metadata.name())
}

/// Upstream: `getPodName`.
pub fn pod_name(set: &str, ordinal: i64) -> String {
    format!("{set}-{ordinal}")
}

/// Whether the name is that of the set's pod of the ordinal in it: `web-1` is, and `web-01` is not.
///
/// Upstream: `getPodName`, compared with the name.
pub fn is_pod_name(set: &str, name: &str) -> bool {
    parent_and_ordinal(name).is_some_and(|(parent, ordinal)| {
        let digits = &name[parent.len() + 1..];
        parent == set && ordinal >= 0 && (digits == "0" || !digits.starts_with('0'))
    })
}

/// Upstream: `getPersistentVolumeClaimName`.
pub fn claim_name(template: &str, set: &str, ordinal: i64) -> String {
    format!("{template}-{set}-{ordinal}")
}

/// The ordinals of the pods there are, and of those that one sync may make.
pub fn ordinals_of_interest(set: &StatefulSet, pods: &[Arc<Pod>]) -> BTreeSet<i64> {
    let members = pods.iter().filter(|pod| is_member_of(set, pod)).map(|pod| ordinal(pod));
    let mut ordinals: BTreeSet<i64> = members.filter(|ordinal| *ordinal >= 0).collect();
    let missing: Vec<i64> =
        set.spec.ordinals().filter(|ordinal| !ordinals.contains(ordinal)).take(MISSING_MAX).collect();
    ordinals.extend(missing);
    ordinals
}
