//! Reads one Service, its Endpoints, and the slices that mirror them.

use std::sync::Arc;

use shared::api::object::Key;
use shared::controllers::endpoints::endpointslice_tracker::EndpointSliceTracker;
use shared::following::cache::{Cache, IndexId};
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::{EndpointSlice, Endpoints, MANAGED_BY, Service, labels};

#[derive(Clone, Debug)]
pub struct Observed {
    /// The key of the Service, and of its Endpoints.
    pub key: Key,
    pub service: Option<Arc<Service>>,
    /// Its Endpoints; none if they are gone, or their label excludes them.
    pub endpoints: Option<Arc<Endpoints>>,
    /// The slices that mirror them, except for those that are being deleted.
    pub slices: Vec<Arc<EndpointSlice>>,
}

/// The caches of this operator, and its memory. Endpoints are watched only in namespaces of Services without a selector.
pub struct Caches {
    pub services: Arc<Cache<Service>>,
    /// Endpoints that their label does not exclude.
    pub endpoints: Arc<Cache<Endpoints>>,
    pub endpoint_slices: Arc<Cache<EndpointSlice>>,
    pub endpoint_slices_by_service: IndexId,
    pub(crate) tracker: EndpointSliceTracker,
}

pub(crate) struct Informers {
    pub(crate) services: Informer<Service>,
    pub(crate) endpoints: Informer<Endpoints>,
    pub(crate) endpoint_slices: Informer<EndpointSlice>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let services = InformerBuilder::<Service>::new().build();
        let meant = format!("{}!=true", labels::SKIP_MIRROR);
        let endpoints = InformerBuilder::<Endpoints>::new().labels(meant).build();
        let own = format!("{}={MANAGED_BY}", labels::MANAGED_BY);
        let mut slices = InformerBuilder::<EndpointSlice>::new().labels(own);
        let endpoint_slices_by_service =
            slices.index(|slice, emit| slice.service().iter().for_each(|service| emit(service.into())));
        let endpoint_slices = slices.build();
        let caches = Self {
            services: services.cache(),
            endpoints: endpoints.cache(),
            endpoint_slices: endpoint_slices.cache(),
            endpoint_slices_by_service,
            tracker: EndpointSliceTracker::default(),
        };
        (caches, Informers { services, endpoints, endpoint_slices })
    }

    pub fn observe(&self, key: &Key) -> Observed {
        Observed {
            key: key.clone(),
            service: self.services.get(key),
            endpoints: self.endpoints.get(key),
            slices: self.slices_of(key),
        }
    }

    /// Slices that this process has deleted are left out, even if the cache still has them.
    ///
    /// Upstream: `endpointSlicesMirroredForService`,
    /// `pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go`.
    fn slices_of(&self, service: &Key) -> Vec<Arc<EndpointSlice>> {
        let mut slices = self.endpoint_slices.by_index(self.endpoint_slices_by_service, &service.into());
        slices.retain(|slice| !slice.metadata.is_being_deleted() && !self.tracker.has_deleted(slice));
        slices
    }
}

#[cfg(test)]
mod tests {
    use shared::testing::{object, store};

    use super::*;

    /// Upstream: `TestEndpointSlicesMirroredForService`. The watch asks for this controller's label.
    #[test]
    fn slices_are_found_by_the_name_of_their_service() {
        let row = |namespace: &str, service: Option<&str>, expected: usize| {
            let (caches, _) = Caches::new();
            let slice = object("discovery.k8s.io/v1", "EndpointSlice", "example-1").namespace(namespace);
            let slice = slice.set(&["addressType"], "IPv4").label(labels::MANAGED_BY, MANAGED_BY);
            let slice = service.into_iter().fold(slice, |slice, name| slice.label(labels::SERVICE_NAME, name));
            store(&caches.endpoint_slices, &slice.build());
            assert_eq!(caches.observe(&Key::new("ns1", "svc1")).slices.len(), expected, "{namespace} {service:?}");
        };
        row("ns1", Some("svc1"), 1);
        row("ns2", Some("svc1"), 0);
        row("ns1", Some("svc2"), 0);
        row("ns1", None, 0);
    }

    #[test]
    fn slices_on_their_way_out_do_not_count() {
        let (caches, _) = Caches::new();
        let key = Key::new("default", "web");
        let slice = |name: &str| {
            let slice = object("discovery.k8s.io/v1", "EndpointSlice", name).set(&["addressType"], "IPv4");
            slice.label(labels::SERVICE_NAME, "web")
        };
        let (stays, ends, deleted) = (slice("a").build(), slice("b").terminating().build(), slice("c").build());
        for slice in [&stays, &ends, &deleted] {
            store(&caches.endpoint_slices, slice);
        }
        caches.tracker.deleted(&key, deleted.metadata.uid);
        assert_eq!(caches.observe(&key).slices, [stays]);
    }
}
