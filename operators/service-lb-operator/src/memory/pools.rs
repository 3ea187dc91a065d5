//! The addresses in use, and the Services that wait for one, remembered between syncs.
//!
//! After a restart both come from the Services alone. What was given and is not in any status yet is lost then: nobody
//! has seen it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;
use shared::following::cache::Change;

use crate::objects::allocations::Allocations;
use crate::objects::pooled_service::{PooledService, User};

#[derive(Default)]
pub struct PoolsMemory(Mutex<State>);

#[derive(Default)]
struct State {
    allocations: Allocations,
    /// The Services that do not have what they ask for.
    waiting: BTreeSet<Key>,
}

impl PoolsMemory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the addresses of every Service of type LoadBalancer, also of those that others serve: an address of one
    /// of these is never given again.
    pub fn note(&self, change: &Change<'_, PooledService>) {
        let mut state = self.state();
        let (key, uid) = (&change.latest().metadata.key, change.latest().metadata.uid);
        match change {
            Change::Added(new) | Change::Updated { new, .. } if new.is_load_balancer => {
                state.allocations.show(&new.user, &new.addresses);
            }
            Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => {
                state.allocations.forget(key, uid);
                state.waiting.remove(key);
            }
        }
    }

    /// Decides from the addresses in use.
    pub fn decide<T>(&self, decide: impl FnOnce(&Allocations) -> T) -> T {
        decide(&self.state().allocations)
    }

    /// Notes which addresses a Service gets, and whether it waits for others. No two syncs decide before either is noted:
    /// there is one worker.
    pub fn give(&self, user: &User, addresses: &[IpAddr], is_waiting: bool) {
        let mut state = self.state();
        state.allocations.give(user, addresses);
        if is_waiting {
            state.waiting.insert(user.service.clone());
        } else {
            state.waiting.remove(&user.service);
        }
    }

    /// The other Services that have an address of this one.
    pub fn neighbours(&self, service: &Key) -> BTreeSet<Key> {
        self.state().allocations.neighbours(service)
    }

    pub fn waiting(&self) -> BTreeSet<Key> {
        self.state().waiting.clone()
    }

    /// Forgets what was given and is in no status: another history of the cluster has begun.
    pub fn forget_given(&self) {
        self.state().allocations.forget_given();
    }
}
