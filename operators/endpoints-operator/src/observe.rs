//! Reads what one sync decides on: the Service, its pods, its Endpoints, and what is remembered of it.
//!
//! The cache has the Endpoints that carry this controller's label. Where it has none, others of the name may be there,
//! and the apiserver is asked before anything is written.
//! Left out: waiting for own writes, which [`shared::runtime::consistency`] does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use shared::api::object::Key;
use shared::api::time::Time;
use shared::controllers::endpoints::select::ServicePods;
use shared::controllers::endpoints::trigger_time_tracker::{ServiceState, ServiceStates};
use shared::runtime::cache::Cache;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::{ENDPOINTS, Endpoints, EndpointsMetadata, MANAGED_BY, Pod, Service, labels};

/// All that one sync decides on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The key of the Service, and of its Endpoints.
    pub key: Key,
    /// The Service; none if it is gone.
    pub service: Option<Arc<Service>>,
    /// The pods that it selects.
    pub pods: Vec<Arc<Pod>>,
    /// Its Endpoints.
    pub endpoints: Seen,
    /// The times of what has changed last, to be remembered.
    pub state: Arc<ServiceState>,
    /// When what has changed since the last sync happened, if that is known.
    pub trigger: Option<Time>,
}

/// The knowledge of the Endpoints of a Service.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// These.
    There(Arc<Endpoints>),
    /// The apiserver has none.
    Absent,
    /// The cache has none; there may be some without its label.
    NotCached,
}

/// The caches that a sync reads, and what is remembered between syncs. All but the Services are followed only while one
/// of them selects pods.
pub struct Caches {
    /// The Services, and the pods that they select.
    pub service_pods: ServicePods<Service>,
    /// The Endpoints that this controller manages.
    pub endpoints: Arc<Cache<Endpoints>>,
    states: Mutex<ServiceStates>,
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) services: Informer<Service>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) endpoints: Informer<Endpoints>,
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let (service_pods, services, pods) = ServicePods::new();
        // Those that others write need not be known.
        let own = format!("{}={MANAGED_BY}", labels::MANAGED_BY);
        let endpoints = InformerBuilder::<Endpoints>::new().labels(own).build();
        let caches = Self { service_pods, endpoints: endpoints.cache(), states: Mutex::default() };
        (caches, Informers { services, pods, endpoints })
    }

    fn states(&self) -> MutexGuard<'_, ServiceStates> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Observes the Service of this key, which may be gone.
    pub fn observe(&self, key: &Key) -> Observed {
        let service = self.service_pods.services.get(key);
        let selector = service.as_ref().and_then(|service| service.selects());
        let pods = selector.map(|selector| self.service_pods.selected(key.namespace(), selector)).unwrap_or_default();
        let state = service.as_ref().map(|service| Arc::new(ServiceState::of(service, &pods))).unwrap_or_default();
        Observed {
            key: key.clone(),
            endpoints: self.endpoints.get(key).map_or(Seen::NotCached, Seen::There),
            trigger: service.as_ref().and_then(|_| self.states().trigger(key, &state)),
            service,
            pods,
            state,
        }
    }

    /// A sync decides on this observation.
    pub(crate) fn remember(&self, Observed { key, service, state, .. }: &Observed) {
        match service {
            Some(service) if service.selects().is_some() => self.states().remember(key, state),
            Some(_) => {}
            None => self.states().forget(key),
        }
    }

    /// Whether there is a Service of this key that gets Endpoints.
    pub(crate) fn selects(&self, key: &Key) -> bool {
        self.service_pods.services.get(key).is_some_and(|service| service.selects().is_some())
    }

    /// Reads live which Endpoints of the cluster have no Service, locks of elections apart.
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
        listed.context("cannot look for Endpoints without a Service")
    }
}

/// The same, with the Endpoints as the apiserver has them.
pub(crate) async fn live_endpoints(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let endpoints = match control.get::<Endpoints>(&ENDPOINTS, &observed.key).await {
        Ok(live) => Seen::There(Arc::new(live)),
        Err(error) if error.is_not_found() => Seen::Absent,
        Err(error) => return Err(error).context("cannot look whether there are Endpoints"),
    };
    Ok(Observed { endpoints, ..observed })
}
