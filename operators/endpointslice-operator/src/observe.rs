//! Reads what one sync decides on: the Service, its pods, their nodes, its slices, and what is remembered of it.
//!
//! Left out: the apiserver. All of it comes from caches, which have seen this Service's own writes.

pub mod tracker;
pub mod trigger_time_tracker;

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::Key;
use shared::api::time::Time;
use shared::runtime::cache::{Cache, IndexId, IndexValue};

use crate::objects::{EndpointSlice, Node, Pod, Service};
use crate::plan::topologycache::{ServiceHints, ZoneRatios, zone_ratios};
use tracker::Tracker;

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
    /// When what has changed since the last sync happened, if that is known.
    pub trigger: Option<Time>,
    /// The share of all CPU that each zone has, if hints are wanted and it can be told.
    pub zones: Option<Arc<ZoneRatios>>,
    /// What is remembered of its hints.
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
            trigger: None,
            zones: None,
            hints: ServiceHints::default(),
        }
    }
}

/// Where to read.
pub(crate) struct Sources {
    pub(crate) services: Arc<Cache<Service>>,
    /// The Services by one pair of their selectors.
    pub(crate) by_selector: IndexId,
    pub(crate) pods: Arc<Cache<Pod>>,
    pub(crate) pods_by_namespace: IndexId,
    pub(crate) nodes: Arc<Cache<Node>>,
    pub(crate) slices: Arc<Cache<EndpointSlice>>,
    /// The slices by their Service's key.
    pub(crate) by_service: IndexId,
    pub(crate) tracker: Arc<Tracker>,
}

/// The value under which the slices of a Service are found.
pub(crate) fn service_value(service: &Key) -> IndexValue {
    IndexValue::Text(Text::new(service.as_str()))
}

/// The value under which the Services are found that select by this label: each by the first of its labels.
fn selector_value(namespace: &str, key: &str, value: &str) -> IndexValue {
    IndexValue::Text(Text::new(&format!("{namespace}/{key}={value}")))
}

/// The value under which a Service is found by a pod that it selects.
pub(crate) fn first_of_selector(service: &Service) -> Option<IndexValue> {
    let (key, value) = service.selector.as_ref()?.iter().next()?;
    Some(selector_value(service.metadata.namespace(), key, value))
}

impl Sources {
    /// Observes one Service; none if it is gone.
    pub(crate) fn observe(&self, key: &Key) -> Option<Observed> {
        let service = self.services.get(key)?;
        let Some(selector) = service.selector.clone().filter(|_| !service.is_external_name) else {
            return Some(Observed::only(service));
        };
        let pods = self.selected(key.namespace(), &selector);
        let zones = service.metadata.annotations.is_auto.then(|| self.zones()).flatten();
        Some(Observed {
            nodes: self.zones_of_nodes(&pods),
            slices: self.slices_of(key),
            trigger: self.tracker.trigger(&service, &pods),
            hints: self.tracker.hints(key),
            service,
            pods,
            zones,
        })
    }

    fn selected(&self, namespace: &str, selector: &Labels) -> Vec<Arc<Pod>> {
        let namespace = IndexValue::Text(Text::new(namespace));
        let mut pods = self.pods.by_index(self.pods_by_namespace, &namespace);
        pods.retain(|pod| pod.metadata.labels.contains_all(selector));
        pods
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
        let mut slices = self.slices.by_index(self.by_service, &service_value(service));
        slices.retain(|slice| !slice.metadata.is_being_deleted() && !self.tracker.has_deleted(slice.metadata.uid));
        slices
    }

    /// The shares of the zones; told anew when a node has changed.
    pub(crate) fn zones(&self) -> Option<Arc<ZoneRatios>> {
        self.tracker.zones(|| zone_ratios(self.nodes.all().iter().map(|node| &**node)))
    }

    /// The Services that select a pod with these labels.
    ///
    /// Upstream: `getServicesForPod`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`, which looks at every
    /// Service of the namespace.
    pub(crate) fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<Arc<Service>> {
        let candidates = labels
            .iter()
            .flat_map(|(key, value)| self.services.by_index(self.by_selector, &selector_value(namespace, key, value)));
        let selects =
            |service: &Arc<Service>| service.selector.as_ref().is_some_and(|selector| labels.contains_all(selector));
        candidates.filter(selects).collect()
    }
}
