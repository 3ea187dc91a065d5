//! Which ServiceCIDRs are synced when one of them or an address changes: itself, and those that are being deleted.

use std::sync::Arc;

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{IpAddress, ServiceCidr};
use crate::observe::Caches;

impl Caches {
    /// Upstream: `addServiceCIDR` and `updateServiceCIDR`, `pkg/controller/servicecidrs/servicecidrs_controller.go`.
    pub fn service_cidr_changed(&self, change: Change<'_, ServiceCidr>) -> Vec<Effect> {
        let (old, new) = match change {
            Change::Added(new) => (None, new),
            Change::Updated { old, new } => (Some(&**old), new),
            // No other ServiceCIDR relied on it.
            Change::Deleted(_) => return Vec::new(),
        };
        let own = own_cause(old, new).map(|cause| Effect::Enqueue(new.metadata.key.clone(), cause));
        let has_more = old.is_none_or(|old| old.cidrs != new.cidrs);
        let others = if has_more { self.overlapping(new) } else { Vec::new() };
        own.into_iter().chain(being_deleted(&others)).collect()
    }

    /// Upstream: `addIPAddress` and `deleteIPAddress`, `pkg/controller/servicecidrs/servicecidrs_controller.go`.
    pub fn ip_address_changed(&self, change: Change<'_, IpAddress>) -> Vec<Effect> {
        match change {
            Change::Added(address) | Change::Deleted(address) => being_deleted(&self.containing(address)).collect(),
            Change::Updated { .. } => Vec::new(),
        }
    }
}

fn being_deleted(service_cidrs: &[Arc<ServiceCidr>]) -> impl Iterator<Item = Effect> {
    let being_deleted = service_cidrs.iter().filter(|service_cidr| service_cidr.metadata.is_being_deleted());
    being_deleted.map(|service_cidr| Effect::Enqueue(service_cidr.metadata.key.clone(), Cause::Event))
}

/// Why a change of a ServiceCIDR leads to its own sync, if it does.
fn own_cause(old: Option<&ServiceCidr>, new: &ServiceCidr) -> Option<Cause> {
    let is_edit = old
        .is_none_or(|old| old.cidrs != new.cidrs || old.metadata.is_being_deleted() != new.metadata.is_being_deleted());
    let is_written =
        old.is_some_and(|old| old.metadata.finalizers != new.metadata.finalizers || old.ready != new.ready);
    if is_edit {
        Some(Cause::Edit)
    } else if is_written {
        Some(Cause::Event)
    } else {
        None
    }
}
