//! When what a sync answers to happened: the earliest change of a pod's readiness since the last sync.
//!
//! Left out: changes of a Service besides its creation, whose time nobody knows.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pod::Pod;
use crate::api::object::{Key, Object};
use crate::api::time::Time;

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
    pub fn of<S: Object>(service: &Arc<S>, pods: &[Arc<Pod>]) -> Self {
        let times = pods.iter().filter_map(|pod| Some((pod.metadata.key.clone(), pod.ready_changed?)));
        Self { is_known: true, creation: service.meta().creation, pods: times.collect() }
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

/// The times that the last sync of each Service has seen.
///
/// Upstream: `TriggerTimeTracker`.
#[derive(Debug, Default)]
pub struct ServiceStates(BTreeMap<Key, Arc<ServiceState>>);

impl ServiceStates {
    /// Whether a sync has looked at this Service.
    pub fn knows(&self, service: &Key) -> bool {
        self.0.contains_key(service)
    }

    /// When what led to this state of a Service happened.
    pub fn trigger(&self, service: &Key, state: &ServiceState) -> Option<Time> {
        match self.0.get(service) {
            Some(before) => state.trigger(before),
            None => state.trigger(&ServiceState::default()),
        }
    }

    /// A sync has seen this state of a Service.
    pub fn remember(&mut self, service: &Key, state: &Arc<ServiceState>) {
        self.0.insert(service.clone(), Arc::clone(state));
    }

    /// A Service is gone.
    ///
    /// Upstream: `DeleteService`.
    pub fn forget(&mut self, service: &Key) {
        self.0.remove(service);
    }
}
