//! Reads from the caches all that one sync decides on.
//!
//! Left out: live reads. The one there is, before an adoption, is part of adopting.

use jiff::Timestamp;
use shared::api::object::Key;
use shared::api::pod::PodView;
use shared::controllers::replicas;
use shared::controllers::replicas::caches::Caches;
use shared::runtime::expectations::Expectations;

use crate::objects::ReplicaSet;

/// One ReplicaSet and its pods.
pub type Observed = replicas::Observed<ReplicaSet>;

/// What is known of the ReplicaSet of this key; `None` if there is none.
///
/// Upstream: the first half of `syncReplicaSet`, `pkg/controller/replicaset/replica_set.go`.
pub fn observe(
    caches: &Caches<ReplicaSet>,
    expectations: &Expectations,
    key: &Key,
    now: Timestamp,
) -> Option<Observed> {
    let owner = caches.owners.get(key)?;
    // Before the pods: what is fulfilled in between is then counted at the next sync, and not twice in this one.
    let outstanding = expectations.outstanding(key, now);
    let pods = caches.pods_of(&owner);
    let active = pods.iter().filter(|pod| pod.is_active()).count();
    let related = if active > owner.spec.wanted() { caches.related_pods(&owner) } else { Vec::new() };
    Some(Observed { owner, pods, related, outstanding })
}
