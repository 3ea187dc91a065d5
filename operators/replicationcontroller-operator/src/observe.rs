//! Reads from the caches all that one sync decides on.
//!
//! Left out: pods of other owners. Upstream looks for `ReplicationController`s under the same controller and never finds
//! any, so how many pods share a node does not count here.

use jiff::Timestamp;
use shared::api::object::Key;
use shared::controllers::replicas;
use shared::controllers::replicas::caches::Caches;
use shared::runtime::expectations::Expectations;

use crate::objects::ReplicationController;

/// One `ReplicationController` and its pods.
pub type Observed = replicas::Observed<ReplicationController>;

/// What is known of the `ReplicationController` of this key; `None` if there is none.
///
/// Upstream: the first half of `syncReplicaSet`, `pkg/controller/replicaset/replica_set.go`.
pub fn observe(
    caches: &Caches<ReplicationController>,
    expectations: &Expectations,
    key: &Key,
    now: Timestamp,
) -> Option<Observed> {
    let owner = caches.owners.get(key)?;
    // Before the pods: what is fulfilled in between is then counted at the next sync, and not twice in this one.
    let outstanding = expectations.outstanding(key, now);
    let pods = caches.pods_of(&owner);
    Some(Observed { owner, pods, related: Vec::new(), outstanding })
}
