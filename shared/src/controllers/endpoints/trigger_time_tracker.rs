//! The trigger time of a sync: the earliest change of a pod's readiness since the last sync. Of a Service's own changes
//! only its creation has a known time.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pod::Pod;
use crate::api::object::{Key, Object};
use crate::api::time::Time;

/// The times that a sync of a Service has seen.
#[derive(Debug, Default)]
pub struct ServiceState {
    is_known: bool,
    creation: Option<Time>,
    /// The last change of readiness of each pod, by pod.
    pods: Box<[(Key, Time)]>,
}

impl ServiceState {
    /// The times that this sync sees. `pods` are sorted by key.
    pub fn of<S: Object>(service: &Arc<S>, pods: &[Arc<Pod>]) -> Self {
        let times = pods.iter().filter_map(|pod| Some((pod.metadata.key.clone(), pod.ready_changed?)));
        Self { is_known: true, creation: service.meta().creation, pods: times.collect() }
    }

    /// The trigger time: the earliest time that `before` has not seen, or the creation of a Service that was unknown
    /// before; none if no change has a known time.
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
pub struct ServiceStates(Mutex<BTreeMap<Key, Arc<ServiceState>>>);

impl ServiceStates {
    fn states(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<ServiceState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn knows(&self, service: &Key) -> bool {
        self.states().contains_key(service)
    }

    /// The trigger time of a sync that sees this state of a Service.
    pub fn trigger(&self, service: &Key, state: &ServiceState) -> Option<Time> {
        match self.states().get(service) {
            Some(before) => state.trigger(before),
            None => state.trigger(&ServiceState::default()),
        }
    }

    pub fn remember(&self, service: &Key, state: &Arc<ServiceState>) {
        self.states().insert(service.clone(), Arc::clone(state));
    }

    /// Forget a Service that is gone.
    ///
    /// Upstream: `DeleteService`.
    pub fn forget(&self, service: &Key) {
        self.states().remove(service);
    }
}
