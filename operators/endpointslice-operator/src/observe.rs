//! Reads what one sync decides on: the Service, its pods, their nodes, its slices, and what is remembered of it.
//!
//! Left out: the apiserver. All of it comes from caches, which have seen this Service's own writes.

pub mod tracker;

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::time::Time;
use shared::controllers::endpoints::select::ServicePods;
pub use shared::controllers::endpoints::trigger_time_tracker;
use shared::runtime::cache::{Cache, IndexId, IndexValue};
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::{EndpointSlice, MANAGED_BY, Node, Pod, Service, labels};
use crate::plan::topologycache::{ServiceHints, ZoneRatios, zone_ratios};
use tracker::Tracker;
use trigger_time_tracker::ServiceState;

/// All that one sync decides on.
#[derive(Debug)]
pub struct Observed {
    /// The Service.
    pub service: Arc<Service>,
    /// The pods that it selects.
    pub pods: Vec<Arc<Pod>>,
    /// The zones of the nodes that are there, of those where its pods run.
    pub nodes: BTreeMap<Text, Option<Text>>,
    /// Its slices, without those that are being deleted.
    pub slices: Vec<Arc<EndpointSlice>>,
    /// The times of what has changed last, to be remembered.
    pub state: Arc<ServiceState>,
    /// When what has changed since the last sync happened, if that is known.
    pub trigger: Option<Time>,
    /// The share of all CPU that each zone has, if hints are wanted and it can be told.
    pub zones: Option<Arc<ZoneRatios>>,
    /// The remembered hints of the Service.
    pub hints: ServiceHints,
}

impl Observed {
    /// A Service of which nothing else matters.
    fn only(service: Arc<Service>) -> Self {
        Self {
            service,
            pods: Vec::new(),
            nodes: BTreeMap::new(),
            slices: Vec::new(),
            state: Arc::default(),
            trigger: None,
            zones: None,
            hints: ServiceHints::default(),
        }
    }
}

/// The caches that a sync reads, and what is remembered between syncs. All but the Services are followed only while one
/// of them selects pods.
pub struct Caches {
    /// All Services.
    pub services: Arc<Cache<Service>>,
    /// The Services, and the pods that they select.
    pub service_pods: ServicePods<Service>,
    /// All nodes.
    pub nodes: Arc<Cache<Node>>,
    /// The slices that this controller manages.
    pub endpoint_slices: Arc<Cache<EndpointSlice>>,
    /// The slices by their Service's key.
    pub endpoint_slices_by_service: IndexId,
    pub(crate) tracker: Arc<Tracker>,
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) services: Informer<Service>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) nodes: Informer<Node>,
    pub(crate) endpoint_slices: Informer<EndpointSlice>,
}

/// The value under which the slices of a Service are found.
fn service_value(service: &Key) -> IndexValue {
    IndexValue::Text(Text::new(service.as_str()))
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let (service_pods, services, pods) = ServicePods::new();
        // Slices of other managers need not be known.
        let mut slices = InformerBuilder::<EndpointSlice>::new().labels(format!("{}={MANAGED_BY}", labels::MANAGED_BY));
        let endpoint_slices_by_service =
            slices.index(|slice, emit| slice.service().iter().for_each(|service| emit(service_value(service))));
        let endpoint_slices = slices.build();
        let nodes = InformerBuilder::<Node>::new().build();
        let caches = Self {
            services: services.cache(),
            service_pods,
            nodes: nodes.cache(),
            endpoint_slices: endpoint_slices.cache(),
            endpoint_slices_by_service,
            tracker: Arc::default(),
        };
        (caches, Informers { services, pods, nodes, endpoint_slices })
    }

    /// Observes one Service; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let service = self.services.get(key)?;
        let Some(selector) = service.selects().cloned() else {
            return Some(Observed::only(service));
        };
        let pods = self.service_pods.selected(key.namespace(), &selector);
        let state = Arc::new(ServiceState::of(&service, &pods));
        let zones = service.metadata.annotations.is_auto.then(|| self.zones()).flatten();
        Some(Observed {
            nodes: self.zones_of_nodes(&pods),
            slices: self.slices_of(key),
            trigger: self.tracker.trigger(key, &state),
            state,
            hints: self.tracker.hints(key),
            service,
            pods,
            zones,
        })
    }

    fn zones_of_nodes(&self, pods: &[Arc<Pod>]) -> BTreeMap<Text, Option<Text>> {
        let mut nodes: BTreeMap<Text, Option<Arc<Node>>> = BTreeMap::new();
        for pod in pods {
            nodes.entry(pod.node.clone()).or_insert_with_key(|name| self.nodes.get(&Key::new("", name)));
        }
        nodes.into_iter().filter_map(|(name, node)| Some((name, node?.zone.clone()))).collect()
    }

    /// Slices that this process has deleted are gone, whether or not their events have come.
    ///
    /// Upstream: `dropEndpointSlicesPendingDeletion`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    fn slices_of(&self, service: &Key) -> Vec<Arc<EndpointSlice>> {
        let mut slices = self.endpoint_slices.by_index(self.endpoint_slices_by_service, &service_value(service));
        slices.retain(|slice| !slice.metadata.is_being_deleted() && !self.tracker.slices.has_deleted(slice));
        slices
    }

    /// The shares of the zones. What is remembered of nodes that were followed once does not count.
    pub(crate) fn zones(&self) -> Option<Arc<ZoneRatios>> {
        if self.nodes.is_empty() {
            return None;
        }
        self.tracker.zones(|| self.zones_by_nodes())
    }

    /// The shares of the zones, computed from the nodes.
    pub(crate) fn zones_by_nodes(&self) -> Option<Arc<ZoneRatios>> {
        zone_ratios(self.nodes.all().iter().map(|node| &**node)).map(Arc::new)
    }
}
