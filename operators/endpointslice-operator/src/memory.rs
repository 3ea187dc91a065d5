//! What is remembered between syncs: own writes, trigger times, hints, missing nodes, and the shares of zones. After a
//! restart all of it is unknown, which alone leads to no write.

pub mod topology;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::controllers::endpoints::endpointslice_tracker::EndpointSliceTracker;
use shared::controllers::endpoints::trigger_time_tracker::ServiceStates;

use topology::{ServiceHints, ZoneRatios};

#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) slices: EndpointSliceTracker,
    /// The times that the last sync of each Service has seen.
    pub(crate) services: ServiceStates,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    hints: BTreeMap<Key, ServiceHints>,
    /// The nodes for which each Service waits, because pods are left out without them.
    missing_nodes: BTreeMap<Key, BTreeSet<Text>>,
    zones: Zones,
}

#[derive(Debug, Default)]
enum Zones {
    /// Never computed, or a node has changed since.
    #[default]
    Unknown,
    Known(Option<Arc<ZoneRatios>>),
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hints(&self, service: &Key) -> ServiceHints {
        self.state().hints.get(service).cloned().unwrap_or_default()
    }

    pub(crate) fn remember_hints(&self, service: &Key, hints: ServiceHints) {
        let mut state = self.state();
        if hints == ServiceHints::default() {
            state.hints.remove(service);
        } else {
            state.hints.insert(service.clone(), hints);
        }
    }

    pub(crate) fn await_nodes(&self, service: &Key, nodes: BTreeSet<Text>) {
        let mut state = self.state();
        if nodes.is_empty() {
            state.missing_nodes.remove(service);
        } else {
            state.missing_nodes.insert(service.clone(), nodes);
        }
    }

    pub(crate) fn awaiting(&self, node: &str) -> Vec<Key> {
        let state = self.state();
        let waiting = state.missing_nodes.iter().filter(|(_, nodes)| nodes.contains(node));
        waiting.map(|(service, _)| service.clone()).collect()
    }

    /// Forget a Service that is gone.
    ///
    /// Upstream: `DeleteService`, `endpointslice_tracker.go`.
    pub(crate) fn forget(&self, service: &Key) {
        self.slices.forget(service);
        self.services.forget(service);
        let mut state = self.state();
        state.hints.remove(service);
        state.missing_nodes.remove(service);
    }

    /// Forget the shares of the zones, because a node has changed.
    pub(crate) fn forget_zones(&self) {
        self.state().zones = Zones::Unknown;
    }

    /// The shares of the zones, computed if they are unknown.
    pub(crate) fn zones(&self, compute: impl FnOnce() -> Option<Arc<ZoneRatios>>) -> Option<Arc<ZoneRatios>> {
        if let Zones::Known(zones) = &self.state().zones {
            return zones.clone();
        }
        compute()
    }

    pub(crate) fn remember_zones(&self, zones: Option<Arc<ZoneRatios>>) {
        self.state().zones = Zones::Known(zones);
    }

    /// The Services with a zone that has too few endpoints for its CPU.
    ///
    /// Upstream: `GetOverloadedServices`, `staging/src/k8s.io/endpointslice/topologycache/topologycache.go`.
    pub(crate) fn overloaded(&self, zones: Option<&ZoneRatios>) -> Vec<Key> {
        let state = self.state();
        let overloaded = state.hints.iter().filter(|(_, hints)| hints.is_overloaded(zones));
        overloaded.map(|(service, _)| service.clone()).collect()
    }
}
