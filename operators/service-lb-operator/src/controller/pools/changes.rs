//! Which Services are synced when a Service, the pools or a namespace change: those whose addresses it may change.

use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::{Key, Kind};
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::events::PlannedEvent;
use shared::working::queue::Cause;

use crate::objects::address_pool::PoolsConfigMap;
use crate::objects::pooled_service::PooledService;
use crate::observe::pools::{Caches, Namespace};

const INVALID_POOL_EVENT: &str = "InvalidAddressPool";

impl Caches {
    /// The memory has noted the change already.
    pub fn pooled_service_changed(&self, change: Change<'_, PooledService>) -> Vec<Effect> {
        let service = change.latest();
        let key = &service.metadata.key;
        let (own, is_freeing, is_met) = match change {
            Change::Added(_) => (Some(Effect::Enqueue(key.clone(), Cause::Edit)), false, true),
            Change::Updated { old, new } => {
                let is_edit = !asks_for_the_same(old, new);
                let is_written = old.addresses != new.addresses || old.assigned != new.assigned;
                let cause = if is_edit { Cause::Edit } else { Cause::Event };
                let own = (is_edit || is_written).then(|| Effect::Enqueue(key.clone(), cause));
                // Other ports or another key may make room on a shared address, or take it.
                let is_other_user = old.user != new.user || old.is_load_balancer != new.is_load_balancer;
                (own, is_other_user || loses_address(old, new), is_other_user || old.addresses != new.addresses)
            }
            Change::Deleted(_) => {
                // It may have been given an address that its status does not show.
                (Some(Effect::Forget(key.clone(), service.metadata.uid)), service.is_load_balancer, false)
            }
        };
        let neighbours = is_met.then(|| self.memory.neighbours(key)).into_iter().flatten();
        let waiting = is_freeing.then(|| self.memory.waiting()).into_iter().flatten();
        own.into_iter().chain(neighbours.chain(waiting).map(enqueue)).collect()
    }

    pub fn pools_changed(&self, change: Change<'_, PoolsConfigMap>) -> Vec<Effect> {
        if let Change::Updated { old, new } = change
            && old.pools == new.pools
        {
            return Vec::new();
        }
        let services = self.services.all();
        enqueue_all(&services)
    }

    pub fn namespace_changed(&self, change: Change<'_, Namespace>) -> Vec<Effect> {
        let namespace = match change {
            Change::Updated { old, new } if old.metadata.labels == new.metadata.labels => return Vec::new(),
            Change::Added(new) | Change::Updated { new, .. } => new,
            Change::Deleted(_) => return Vec::new(),
        };
        let services = self.services_in(namespace.metadata.name());
        enqueue_all(&services)
    }
}

/// The events of the pools that are wrong, unless they were wrong in the same way before.
pub(super) fn pool_faults(change: Change<'_, PoolsConfigMap>) -> Vec<PlannedEvent> {
    let (old, new) = match change {
        Change::Added(new) => (None, new),
        Change::Updated { old, new } => (Some(old), new),
        Change::Deleted(_) => return Vec::new(),
    };
    let is_new = |fault: &&(Text, String)| old.is_none_or(|old| !old.pools.faults.contains(fault));
    let faults = new.pools.faults.iter().filter(is_new);
    let event = |(pool, fault): &(Text, String)| {
        PlannedEvent::warning(new.reference(), INVALID_POOL_EVENT, format!("The pool {pool} is left out: {fault}"))
    };
    faults.map(event).collect()
}

fn enqueue_all(services: &[Arc<PooledService>]) -> Vec<Effect> {
    let for_pools = services.iter().filter(|service| service.may_be_for_pools());
    for_pools.map(|service| enqueue(service.metadata.key.clone())).collect()
}

fn enqueue(service: Key) -> Effect {
    Effect::Enqueue(service, Cause::Event)
}

fn asks_for_the_same(old: &PooledService, new: &PooledService) -> bool {
    (&old.user, &old.request, &old.class, old.is_load_balancer)
        == (&new.user, &new.request, &new.class, new.is_load_balancer)
}

fn loses_address(old: &PooledService, new: &PooledService) -> bool {
    old.addresses.iter().any(|address| !new.addresses.contains(address))
}
