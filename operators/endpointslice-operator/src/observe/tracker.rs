//! The memory of this process between syncs: its own writes, the times it has seen, and the hints it has given.
//!
//! A process that starts anew has forgotten all of it, and writes nothing because of that.
//! Left out: waiting for own creations and updates, which [`shared::runtime::consistency`] does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::time::Time;
use shared::controllers::endpoints::endpointslice_tracker::EndpointSliceTracker;
use shared::controllers::endpoints::trigger_time_tracker::{ServiceState, ServiceStates};

use crate::plan::topologycache::{ServiceHints, ZoneRatios};

/// The memory.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// Its own writes.
    pub(crate) slices: EndpointSliceTracker,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    services: ServiceStates,
    hints: BTreeMap<Key, ServiceHints>,
    /// The nodes that each Service waits for, because of pods that are left out without them.
    missing_nodes: BTreeMap<Key, BTreeSet<Text>>,
    zones: Zones,
}

#[derive(Debug, Default)]
enum Zones {
    /// A node has changed since they were computed, or they never were.
    #[default]
    Unknown,
    /// As computed from the nodes.
    Known(Option<Arc<ZoneRatios>>),
}

impl Tracker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a sync has looked at this Service and its slices.
    pub(crate) fn knows(&self, service: &Key) -> bool {
        self.state().services.knows(service)
    }

    /// When what led to this state of a Service happened.
    pub(crate) fn trigger(&self, service: &Key, state: &ServiceState) -> Option<Time> {
        self.state().services.trigger(service, state)
    }

    /// A sync has seen this state of a Service.
    pub(crate) fn remember_state(&self, service: &Key, state: &Arc<ServiceState>) {
        self.state().services.remember(service, state);
    }

    /// The remembered hints of a Service.
    pub(crate) fn hints(&self, service: &Key) -> ServiceHints {
        self.state().hints.get(service).cloned().unwrap_or_default()
    }

    /// The hints of a Service to remember.
    pub(crate) fn remember_hints(&self, service: &Key, hints: ServiceHints) {
        let mut state = self.state();
        if hints == ServiceHints::default() {
            state.hints.remove(service);
        } else {
            state.hints.insert(service.clone(), hints);
        }
    }

    /// A Service waits for these nodes, and for no others.
    pub(crate) fn await_nodes(&self, service: &Key, nodes: BTreeSet<Text>) {
        let mut state = self.state();
        if nodes.is_empty() {
            state.missing_nodes.remove(service);
        } else {
            state.missing_nodes.insert(service.clone(), nodes);
        }
    }

    /// The Services that wait for this node.
    pub(crate) fn awaiting(&self, node: &str) -> Vec<Key> {
        let state = self.state();
        let waiting = state.missing_nodes.iter().filter(|(_, nodes)| nodes.contains(node));
        waiting.map(|(service, _)| service.clone()).collect()
    }

    /// A Service is gone.
    ///
    /// Upstream: `DeleteService`, `endpointslice_tracker.go`.
    pub(crate) fn forget(&self, service: &Key) {
        self.slices.forget(service);
        let mut state = self.state();
        state.services.forget(service);
        state.hints.remove(service);
        state.missing_nodes.remove(service);
    }

    /// A node has changed.
    pub(crate) fn forget_zones(&self) {
        self.state().zones = Zones::Unknown;
    }

    /// The shares of the zones that were remembered; `compute` gives them where a node has changed since then.
    pub(crate) fn zones(&self, compute: impl FnOnce() -> Option<Arc<ZoneRatios>>) -> Option<Arc<ZoneRatios>> {
        if let Zones::Known(zones) = &self.state().zones {
            return zones.clone();
        }
        compute()
    }

    /// These are the shares of the zones.
    pub(crate) fn remember_zones(&self, zones: Option<Arc<ZoneRatios>>) {
        self.state().zones = Zones::Known(zones);
    }

    /// The Services of which some zone has too few endpoints for its CPU.
    ///
    /// Upstream: `GetOverloadedServices`, `staging/src/k8s.io/endpointslice/topologycache/topologycache.go`.
    pub(crate) fn overloaded(&self, zones: Option<&ZoneRatios>) -> Vec<Key> {
        let state = self.state();
        let overloaded = state.hints.iter().filter(|(_, hints)| hints.is_overloaded(zones));
        overloaded.map(|(service, _)| service.clone()).collect()
    }
}
