//! Services and the pods that they select, found by indices.
//!
//! A Service is found by the first label of its selector, so that a change of a pod looks at few of a namespace's
//! Services. Left out: the decision whether a selected pod is listed.

use std::sync::Arc;

use super::pod::Pod;
use super::service::Selecting;
use crate::api::intern::Text;
use crate::api::labels::Labels;
use crate::api::object::Key;
use crate::api::pod::LIVE;
use crate::runtime::cache::{Cache, IndexId, IndexValue};
use crate::runtime::informer::{Informer, InformerBuilder};

/// The Services, and the pods that they may select.
pub struct ServicePods<S> {
    /// All Services.
    pub services: Arc<Cache<S>>,
    services_by_selector: IndexId,
    /// The pods that have an IP and have not ended. Other pods are listed nowhere: see [`Pod::is_listed`].
    pub pods: Arc<Cache<Pod>>,
    pods_by_namespace: IndexId,
}

impl<S: Selecting> ServicePods<S> {
    /// Empty caches, and the informers that fill them.
    pub fn new() -> (Self, Informer<S>, Informer<Pod>) {
        let mut services = InformerBuilder::<S>::new();
        let services_by_selector =
            services.index(|service, emit| first_of_selector(service).into_iter().for_each(emit));
        let mut pods = InformerBuilder::<Pod>::new().fields(format!("status.podIP!=,{LIVE}"));
        let pods_by_namespace = pods.index_by_namespace();
        let (services, pods) = (services.build(), pods.build());
        let all = Self { services: services.cache(), services_by_selector, pods: pods.cache(), pods_by_namespace };
        (all, services, pods)
    }

    /// The pods of a namespace that this selector selects, by key.
    pub fn selected(&self, namespace: &str, selector: &Labels) -> Vec<Arc<Pod>> {
        let namespace = IndexValue::Text(Text::new(namespace));
        let mut pods = self.pods.by_index(self.pods_by_namespace, &namespace);
        pods.retain(|pod| pod.metadata.labels.contains_all(selector));
        pods
    }

    /// The keys of the Services that select a pod with these labels.
    ///
    /// Upstream: `getServicesForPod`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`, which looks at every
    /// Service of the namespace.
    pub fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<Key> {
        let candidates = labels.iter().flat_map(|(key, value)| {
            self.services.by_index(self.services_by_selector, &selector_value(namespace, key, value))
        });
        let selects = |service: &Arc<S>| service.selector().is_some_and(|selector| labels.contains_all(selector));
        candidates.filter(selects).map(|service| service.meta().key.clone()).collect()
    }
}

/// The value under which the Services are found that select by this label: each by the first of its labels.
fn selector_value(namespace: &str, key: &str, value: &str) -> IndexValue {
    IndexValue::Text(Text::new(&format!("{namespace}/{key}={value}")))
}

/// The value under which a Service is found by a pod that it selects.
fn first_of_selector<S: Selecting>(service: &S) -> Option<IndexValue> {
    let (key, value) = service.selector()?.iter().next()?;
    Some(selector_value(service.meta().namespace(), key, value))
}
