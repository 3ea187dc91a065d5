//! Reads one Service, its pods, their nodes and its slices from the caches, and what is remembered of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::time::Time;
use shared::controllers::endpoints::select::ServicePods;
use shared::controllers::endpoints::trigger_time_tracker::ServiceState;
use shared::following::cache::{Cache, IndexId};
use shared::following::informer::{Informer, InformerBuilder};

use crate::memory::Memory;
use crate::memory::topology::{ServiceHints, ZoneRatios, zone_ratios};
use crate::objects::{EndpointSlice, MANAGED_BY, Node, Pod, Service, labels};

#[derive(Debug)]
pub struct Observed {
    pub service: Arc<Service>,
    pub pods: Vec<Arc<Pod>>,
    /// The zones of the existing nodes where its pods run.
    pub nodes: BTreeMap<Text, Option<Text>>,
    /// Its slices, except for those that are being deleted.
    pub slices: Vec<Arc<EndpointSlice>>,
    pub state: Arc<ServiceState>,
    /// The time of the first change since the last sync, if it is known.
    pub trigger: Option<Time>,
    /// The shares of the zones, if the Service wants hints and they are known.
    pub zones: Option<Arc<ZoneRatios>>,
    /// The hints at the last sync.
    pub hints: ServiceHints,
}

impl Observed {
    /// The observation of a Service that gets no slices.
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

/// The caches of this operator, and its memory. All but the Services are watched only while a Service selects pods.
pub struct Caches {
    pub services: Arc<Cache<Service>>,
    /// Services, and the pods that they may select.
    pub service_pods: ServicePods<Service>,
    pub nodes: Arc<Cache<Node>>,
    pub endpoint_slices: Arc<Cache<EndpointSlice>>,
    pub endpoint_slices_by_service: IndexId,
    pub(crate) memory: Arc<Memory>,
}

pub(crate) struct Informers {
    pub(crate) services: Informer<Service>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) nodes: Informer<Node>,
    pub(crate) endpoint_slices: Informer<EndpointSlice>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let (service_pods, services, pods) = ServicePods::new();
        let mut slices = InformerBuilder::<EndpointSlice>::new().labels(format!("{}={MANAGED_BY}", labels::MANAGED_BY));
        let endpoint_slices_by_service =
            slices.index(|slice, emit| slice.service().iter().for_each(|service| emit(service.into())));
        let endpoint_slices = slices.build();
        let nodes = InformerBuilder::<Node>::new().build();
        let caches = Self {
            services: services.cache(),
            service_pods,
            nodes: nodes.cache(),
            endpoint_slices: endpoint_slices.cache(),
            endpoint_slices_by_service,
            memory: Arc::default(),
        };
        (caches, Informers { services, pods, nodes, endpoint_slices })
    }

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
            trigger: self.memory.services.trigger(key, &state),
            state,
            hints: self.memory.hints(key),
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

    /// Slices that this process has deleted are left out, even if the cache still has them.
    ///
    /// Upstream: `dropEndpointSlicesPendingDeletion`, `pkg/controller/endpointslice/endpointslice_controller.go`.
    fn slices_of(&self, service: &Key) -> Vec<Arc<EndpointSlice>> {
        let mut slices = self.endpoint_slices.by_index(self.endpoint_slices_by_service, &service.into());
        slices.retain(|slice| !slice.metadata.is_being_deleted() && !self.memory.slices.has_deleted(slice));
        slices
    }

    /// The shares of the zones. If nodes are not watched any more, the remembered ones are ignored.
    pub(crate) fn zones(&self) -> Option<Arc<ZoneRatios>> {
        if self.nodes.is_empty() {
            return None;
        }
        self.memory.zones(|| self.zones_by_nodes())
    }

    /// The shares of the zones, computed from the nodes.
    pub(crate) fn zones_by_nodes(&self) -> Option<Arc<ZoneRatios>> {
        zone_ratios(self.nodes.all().iter().map(|node| &**node)).map(Arc::new)
    }
}
