//! Services and the pods that they select.
//!
//! Both are indexed by the first label of the Service's selector, so a change of a pod reads few Services of its namespace,
//! and a sync reads few pods.

use std::sync::Arc;

use super::pod::Pod;
use super::service::Selecting;
use crate::api::labels::Labels;
use crate::api::object::Key;
use crate::api::pod::LIVE;
use crate::controllers::by_label::{ByLabel, label_value};
use crate::following::cache::{Cache, IndexId};
use crate::following::informer::{Informer, InformerBuilder};

/// The caches of Services and of the pods that they may select.
pub struct ServicePods<S> {
    pub services: Arc<Cache<S>>,
    services_by_selector: IndexId,
    /// The pods that have an IP and have not ended; no other pod is listed ([`Pod::is_listed`]).
    pub pods: Arc<Cache<Pod>>,
    pods_by_label: ByLabel<Pod>,
}

impl<S: Selecting> ServicePods<S> {
    pub fn new() -> (Self, Informer<S>, Informer<Pod>) {
        let mut services = InformerBuilder::<S>::new();
        let services_by_selector = services.index(|service, emit| {
            if let Some(selector) = service.selector() {
                emit(label_value(service.meta().namespace(), selector.iter().next()));
            }
        });
        let pods = InformerBuilder::<Pod>::new().fields(format!("status.podIP!=,{LIVE}"));
        let ((pods_by_label, pods), services) = (ByLabel::new(pods), services.build());
        let all = Self { services: services.cache(), services_by_selector, pods: pods.cache(), pods_by_label };
        (all, services, pods)
    }

    pub fn selected(&self, namespace: &str, selector: &Labels) -> Vec<Arc<Pod>> {
        let mut pods = self.pods_by_label.find(namespace, selector.iter().next());
        pods.retain(|pod| pod.metadata.labels.contains_all(selector));
        pods
    }

    /// The keys of the Services that select a pod with these labels.
    ///
    /// Upstream: `getServicesForPod`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`, which looks at every
    /// Service of the namespace.
    pub fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<Key> {
        let candidates = labels
            .iter()
            .flat_map(|label| self.services.by_index(self.services_by_selector, &label_value(namespace, Some(label))));
        let selects = |service: &Arc<S>| service.selector().is_some_and(|selector| labels.contains_all(selector));
        candidates.filter(selects).map(|service| service.meta().key.clone()).collect()
    }
}
