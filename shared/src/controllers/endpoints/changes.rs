//! Which Services a change of a Service, of a pod or of a slice concerns.
//!
//! Left out: pods without an address and pods that have ended, as long as they stay so. One that loses its address or
//! ends is deleted to its informer, with what it was before.

use std::collections::BTreeSet;
use std::time::Duration;

use super::endpointslice_tracker::EndpointSliceTracker;
use super::pod::Pod;
use super::select::ServicePods;
use super::service::Selecting;
use super::slice::EndpointSlice;
use crate::api::labels::Labels;
use crate::api::object::Key;
use crate::runtime::cache::Change;
use crate::runtime::effect::Effect;
use crate::runtime::queue::Cause;

/// The purpose of a timer, in words.
const POD_CHANGES: &str = "changes of its pods, to be written together";

/// A Service is synced unless it asks for the same as before.
pub fn service_changed<S: Selecting>(change: Change<'_, S>) -> Vec<Effect> {
    let key = || change.latest().meta().key.clone();
    match change {
        Change::Updated { old, new } if old.asks_for_the_same(new) => Vec::new(),
        Change::Added(_) | Change::Updated { .. } => vec![Effect::Enqueue(key(), Cause::Edit)],
        Change::Deleted(_) => vec![Effect::Enqueue(key(), Cause::Event)],
    }
}

impl<S: Selecting> ServicePods<S> {
    /// The Services that a pod comes to, leaves, or changes for, each after this delay.
    ///
    /// Upstream: `GetPodUpdateProjectionKey`, `GetServicesToUpdate`,
    /// `staging/src/k8s.io/endpointslice/util/controller_utils.go`.
    pub fn pod_changed(&self, change: Change<'_, Pod>, delay: Duration) -> Vec<Effect> {
        let services = match change {
            Change::Added(pod) | Change::Deleted(pod) if pod.is_listed() => self.keys(pod, &pod.metadata.labels),
            Change::Updated { old, new } if old.is_listed() || new.is_listed() => {
                let before = || self.keys(new, &old.metadata.labels);
                let after = self.keys(new, &new.metadata.labels);
                match (is_changed(old, new), old.metadata.labels != new.metadata.labels) {
                    (false, false) => BTreeSet::new(),
                    (true, false) => after,
                    (true, true) => &before() | &after,
                    (false, true) => &before() ^ &after,
                }
            }
            Change::Added(_) | Change::Deleted(_) | Change::Updated { .. } => BTreeSet::new(),
        };
        services.into_iter().map(|service| Effect::EnqueueAfter(service, delay, POD_CHANGES)).collect()
    }

    fn keys(&self, pod: &Pod, labels: &Labels) -> BTreeSet<Key> {
        self.selecting(pod.metadata.namespace(), labels).into_iter().collect()
    }
}

/// Whether a pod's endpoints are to change. Its node and its host name do not change once it has an address.
///
/// Upstream: `podEndpointsChanged`, `controller_utils.go`, which does not notice when a pod ends that was never ready.
fn is_changed(old: &Pod, new: &Pod) -> bool {
    let state = |pod: &Pod| (pod.metadata.deletion, pod.is_ready, pod.has_ended);
    state(old) != state(new) || old.ips != new.ips
}

impl EndpointSliceTracker {
    /// The Services whose slice somebody else has changed.
    ///
    /// Upstream: `onEndpointSliceAdd`, `onEndpointSliceUpdate`, `onEndpointSliceDelete`,
    /// `pkg/controller/endpointslice/endpointslice_controller.go`,
    /// `pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go`. There a slice that another
    /// controller takes over, or gives away, is updated; here it comes or goes. And there nobody minds when a slice goes
    /// that this process has not written yet.
    pub fn services_of<A, T>(&self, change: Change<'_, EndpointSlice<A, T>>) -> impl Iterator<Item = Key> {
        let service = |slice: &EndpointSlice<A, T>| {
            let service = slice.service();
            if service.is_none() {
                tracing::warn!(slice = %slice.metadata.key, "a slice without the name of its service");
            }
            service
        };
        let services = match change {
            Change::Added(slice) if self.is_news(slice) => [service(slice), None],
            Change::Updated { old, new } if old.service() != new.service() => [service(new), old.service()],
            Change::Updated { old: _, new } if self.is_news(new) => [service(new), None],
            Change::Deleted(slice) if !self.has_deleted(slice) => [service(slice), None],
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => [None, None],
        };
        services.into_iter().flatten()
    }
}
