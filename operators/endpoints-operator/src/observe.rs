//! Reads one Service, its pods, its Endpoints, and the times of the last sync.
//!
//! The cache holds only Endpoints with this controller's label. If it has none, Endpoints without the label may exist, so
//! the sync reads them live before it writes.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::time::Time;
use shared::controllers::endpoints::select::ServicePods;
use shared::controllers::endpoints::trigger_time_tracker::{ServiceState, ServiceStates};
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::{ENDPOINTS, Endpoints, EndpointsMetadata, MANAGED_BY, Pod, Service, labels};

#[derive(Clone, Debug)]
pub struct Observed {
    /// The key of the Service, and of its Endpoints.
    pub key: Key,
    pub service: Option<Arc<Service>>,
    pub pods: Vec<Arc<Pod>>,
    pub endpoints: Seen,
    pub state: Arc<ServiceState>,
    /// The time of the first change since the last sync, if it is known.
    pub trigger: Option<Time>,
}

/// What is known of the Endpoints of a Service.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    There(Arc<Endpoints>),
    /// A live read found none.
    Absent,
    /// The cache has none; Endpoints without the label may exist.
    NotCached,
}

/// The caches of this operator, and its memory. All but the Services are watched only while a Service selects pods.
pub struct Caches {
    /// Services, and the pods that they may select.
    pub service_pods: ServicePods<Service>,
    pub endpoints: Arc<Cache<Endpoints>>,
    states: ServiceStates,
}

pub(crate) struct Informers {
    pub(crate) services: Informer<Service>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) endpoints: Informer<Endpoints>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let (service_pods, services, pods) = ServicePods::new();
        let own = format!("{}={MANAGED_BY}", labels::MANAGED_BY);
        let endpoints = InformerBuilder::<Endpoints>::new().labels(own).build();
        let caches = Self { service_pods, endpoints: endpoints.cache(), states: ServiceStates::default() };
        (caches, Informers { services, pods, endpoints })
    }

    pub fn observe(&self, key: &Key) -> Observed {
        let service = self.service_pods.services.get(key);
        let selector = service.as_ref().and_then(|service| service.selects());
        let pods = selector.map(|selector| self.service_pods.selected(key.namespace(), selector)).unwrap_or_default();
        let state = service.as_ref().map(|service| Arc::new(ServiceState::of(service, &pods))).unwrap_or_default();
        Observed {
            key: key.clone(),
            endpoints: self.endpoints.get(key).map_or(Seen::NotCached, Seen::There),
            trigger: service.as_ref().and_then(|_| self.states.trigger(key, &state)),
            service,
            pods,
            state,
        }
    }

    pub(crate) fn remember(&self, Observed { key, service, state, .. }: &Observed) {
        match service {
            Some(service) if service.selects().is_some() => self.states.remember(key, state),
            Some(_) => {}
            None => self.states.forget(key),
        }
    }

    /// Whether the Service of this key exists and gets Endpoints.
    pub(crate) fn selects(&self, key: &Key) -> bool {
        self.service_pods.services.get(key).is_some_and(|service| service.selects().is_some())
    }

    /// List all Endpoints live, and call `each` for those without a Service, except for locks of elections.
    ///
    /// Upstream: `checkLeftoverEndpoints`, `pkg/controller/endpoint/endpoints_controller.go`.
    pub(crate) async fn leftovers(&self, control: &Control, each: impl Fn(&Key) + Send) -> anyhow::Result<()> {
        let look = |EndpointsMetadata { metadata }| {
            let key = &metadata.key;
            if !metadata.annotations.is_lock && self.service_pods.services.get(key).is_none() {
                each(key);
            }
        };
        let listed = control.list_each(&ENDPOINTS, "", Selection::default(), Accept::Metadata, look).await;
        listed.context("cannot list Endpoints")
    }
}

/// The same observation with the Endpoints read live.
pub(crate) async fn live_endpoints(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let live = control.get(&ENDPOINTS, &observed.key).await.unless_absent().context("cannot read Endpoints")?;
    let endpoints = live.map_or(Seen::Absent, |live| Seen::There(Arc::new(live)));
    Ok(Observed { endpoints, ..observed })
}
