//! When what a sync answers to happened: the earliest change of a pod's readiness since the last sync.
//!
//! Left out: changes of a Service besides its creation, whose time nobody knows.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go`.

use std::sync::Arc;

use shared::api::object::Key;
use shared::api::time::Time;

use crate::objects::{Pod, Service};

/// The times that a sync of a Service has seen.
#[derive(Debug, Default)]
pub struct ServiceState {
    /// Whether there was one.
    is_known: bool,
    /// When the Service was created.
    creation: Option<Time>,
    /// When each pod last became ready, or unready; by pod.
    pods: Box<[(Key, Time)]>,
}

impl ServiceState {
    /// The times that this sync sees. `pods` are sorted by key.
    pub fn of(service: &Service, pods: &[Arc<Pod>]) -> Self {
        let times = pods.iter().filter_map(|pod| Some((pod.metadata.key.clone(), pod.ready_changed?)));
        Self { is_known: true, creation: service.metadata.creation, pods: times.collect() }
    }

    /// The time for this sync: the earliest that is later than what was seen `before`; of a Service that was not known
    /// before, its creation; none if nothing happened that has a time.
    ///
    /// Upstream: `ComputeEndpointLastChangeTriggerTime`.
    pub fn trigger(&self, before: &Self) -> Option<Time> {
        if !before.is_known {
            return self.creation;
        }
        let seen = |key: &Key| before.pods.binary_search_by(|(pod, _)| pod.cmp(key)).ok().map(|at| before.pods[at].1);
        let changed = self.pods.iter().filter(|(key, time)| seen(key).is_none_or(|seen| *time > seen));
        let recreated = self.creation.filter(|creation| before.creation.is_none_or(|known| *creation > known));
        changed.map(|(_, time)| *time).chain(recreated).min()
    }
}
