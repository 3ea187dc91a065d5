//! The Services that a change of a Service, a pod or a slice concerns.
//!
//! The informer sees a pod only while it has an IP and runs; a pod that loses its IP or ends is a deleted one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::endpointslice_tracker::EndpointSliceTracker;
use super::pod::Pod;
use super::select::ServicePods;
use super::service::Selecting;
use super::slice::EndpointSlice;
use crate::api::labels::Labels;
use crate::api::object::Key;
use crate::following::cache::Change;
use crate::working::effect::Effect;
use crate::working::queue::Cause;

const POD_CHANGES: &str = "a batch of changes of its pods";

/// Sync a Service unless it asks for the same as before.
pub fn service_changed<S: Selecting>(change: Change<'_, S>) -> Vec<Effect> {
    let key = || change.latest().meta().key.clone();
    match change {
        Change::Updated { old, new } if old.asks_for_the_same(new) => Vec::new(),
        Change::Added(_) | Change::Updated { .. } => vec![Effect::Enqueue(key(), Cause::Edit)],
        Change::Deleted(_) => vec![Effect::Enqueue(key(), Cause::Event)],
    }
}

impl<S: Selecting> ServicePods<S> {
    /// Sync the Services whose addresses the change of a pod affects, each after this delay.
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

/// Whether the endpoints of a pod change. Its node and host name are final once it has an address.
///
/// Upstream: `podEndpointsChanged`, `controller_utils.go`, which misses the end of a pod that was never ready.
fn is_changed(old: &Pod, new: &Pod) -> bool {
    let state = |pod: &Pod| (pod.metadata.deletion, pod.is_ready, pod.has_ended);
    state(old) != state(new) || old.ips != new.ips
}

impl EndpointSliceTracker {
    /// The Services whose slice another client has changed.
    ///
    /// Upstream: `onEndpointSliceAdd`, `onEndpointSliceUpdate`, `onEndpointSliceDelete`,
    /// `pkg/controller/endpointslice/endpointslice_controller.go`,
    /// `pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go`. Upstream ignores the deletion of a
    /// slice that this process has not written. A slice whose manager changes is an update there, and an addition or a
    /// deletion here.
    pub fn services_of<A, T>(&self, change: Change<'_, EndpointSlice<A, T>>) -> impl Iterator<Item = Key> {
        let service = |slice: &EndpointSlice<A, T>| {
            let service = slice.service();
            if service.is_none() {
                tracing::warn!(slice = %slice.metadata.key, "slice has no label with the name of its Service");
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
