//! Which Services a change concerns.
//!
//! Left out: pods without an address and pods that have ended, as long as they stay so.

use std::collections::BTreeSet;
use std::sync::Arc;

use shared::api::labels::Labels;
use shared::api::object::Key;
use shared::runtime::cache::Change;
use shared::runtime::queue::Cause;

use crate::objects::{EndpointSlice, Node, Pod, Service};
use crate::observe::Sources;

/// A Service to sync, and why.
pub(super) fn service_changed(change: Change<'_, Service>) -> Option<(Key, Cause)> {
    let key = change.latest().metadata.key.clone();
    match change {
        Change::Added(_) => Some((key, Cause::Edit)),
        Change::Updated { old, new } => (!old.asks_for_the_same(new)).then_some((key, Cause::Edit)),
        Change::Deleted(_) => Some((key, Cause::Event)),
    }
}

impl Sources {
    /// The Services that a pod comes to, leaves, or changes for.
    ///
    /// Upstream: `GetPodUpdateProjectionKey`, `GetServicesToUpdate`,
    /// `staging/src/k8s.io/endpointslice/util/controller_utils.go`.
    pub(super) fn pod_changed(&self, change: Change<'_, Pod>) -> BTreeSet<Key> {
        match change {
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
        }
    }

    fn keys(&self, pod: &Pod, labels: &Labels) -> BTreeSet<Key> {
        let services = self.selecting(pod.metadata.namespace(), labels);
        services.iter().map(|service| service.metadata.key.clone()).collect()
    }

    /// The Services that have left out pods because this node was missing.
    pub(super) fn node_changed(&self, change: Change<'_, Node>) -> Vec<Key> {
        match change {
            Change::Added(node) => self.tracker.awaiting(node.metadata.name()),
            Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
        }
    }

    /// The Services whose slice somebody else has changed.
    ///
    /// Upstream: `onEndpointSliceAdd`, `onEndpointSliceUpdate`, `onEndpointSliceDelete`,
    /// `pkg/controller/endpointslice/endpointslice_controller.go`. There a slice that another controller takes over, or
    /// gives away, is updated; here it comes or goes. And there nobody minds when a slice goes that this process has not
    /// written yet.
    pub(super) fn slice_changed(&self, change: Change<'_, EndpointSlice>) -> Vec<Key> {
        let service = |slice: &Arc<EndpointSlice>| {
            let service = slice.service();
            if service.is_none() {
                tracing::warn!(slice = %slice.metadata.key, "a slice without the name of its service");
            }
            service
        };
        match change {
            Change::Added(slice) if self.tracker.is_news(slice) => service(slice).into_iter().collect(),
            Change::Updated { old, new } if old.service() != new.service() => {
                [service(new), old.service()].into_iter().flatten().collect()
            }
            Change::Updated { old: _, new } if self.tracker.is_news(new) => service(new).into_iter().collect(),
            Change::Deleted(slice) if self.tracker.is_gone(slice.metadata.uid) => service(slice).into_iter().collect(),
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
        }
    }
}

/// Whether a pod's endpoints are to change. Its node and its host name do not change once it has an address.
///
/// Upstream: `podEndpointsChanged`, `controller_utils.go`, which does not notice when a pod ends that was never ready.
fn is_changed(old: &Pod, new: &Pod) -> bool {
    let state = |pod: &Pod| (pod.metadata.deletion, pod.is_ready, pod.has_ended);
    state(old) != state(new) || old.ips != new.ips
}

/// Whether a node's change may change the shares of the zones.
///
/// Upstream: `addNode`, `updateNode`, `deleteNode`, `endpointslice_controller.go`.
pub(super) fn is_of_zones(change: Change<'_, Node>) -> bool {
    match change {
        Change::Added(_) | Change::Deleted(_) => true,
        Change::Updated { old, new } => old.is_ready != new.is_ready || old.zone != new.zone,
    }
}

#[cfg(test)]
mod tests;
