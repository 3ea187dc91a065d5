//! What is known of the kinds, remembered between syncs: which are served, which cannot be followed or read, and which
//! objects wait for a kind to be served; and the turns of objects that name many owners.

pub(crate) mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::api::object::Uid;
use shared::api::resource::Resource;
use shared::following::informer::Health;
use shared::transport::discovery::Discovery;
use shared::working::queue::Backoff;
use tokio::sync::watch;

use crate::objects::ObjectKind;

/// How often a waiting object is synced while no other kinds are served: client-go's default rate limiter.
const UNSERVED: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(1000) };

#[derive(Default)]
pub struct Kinds {
    served: watch::Sender<Arc<Discovery>>,
    monitors: Mutex<BTreeMap<Resource, Arc<Health>>>,
    /// The kinds of which the last read failed.
    unreadable: Mutex<BTreeSet<Resource>>,
    /// Objects that wait for a kind to be served, and how often each was synced meanwhile.
    waiting: Mutex<BTreeMap<Uid, u32>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kinds {
    pub fn served(&self) -> Arc<Discovery> {
        Arc::clone(&self.served.borrow())
    }

    /// Replaces the last discovery. If it has changed, no object waits any more; returns those that did.
    pub(crate) fn set_served(&self, discovery: Discovery) -> Vec<Uid> {
        let is_new = self.served.send_if_modified(|served| {
            let is_new = **served != discovery;
            if is_new {
                *served = Arc::new(discovery);
            }
            is_new
        });
        if !is_new {
            return Vec::new();
        }
        std::mem::take(&mut *lock(&self.waiting)).into_keys().collect()
    }

    /// The resource of this kind, if it is served.
    pub fn resource_of(&self, kind: &ObjectKind) -> Option<Resource> {
        self.served.borrow().resource_of(&kind.api_version, &kind.kind).cloned()
    }

    pub(crate) fn monitor_started(&self, resource: &Resource, health: Arc<Health>) {
        lock(&self.monitors).insert(resource.clone(), health);
    }

    pub(crate) fn monitor_stopped(&self, resource: &Resource) {
        lock(&self.monitors).remove(resource);
    }

    pub(crate) fn is_monitored(&self, is_meant: impl Fn(&Resource) -> bool) -> bool {
        lock(&self.monitors).keys().any(is_meant)
    }

    /// Why a kind cannot be listed or watched now.
    pub fn failing(&self, resource: &Resource) -> Option<String> {
        let is_meant = |known: &Resource| (&known.group, &known.plural) == (&resource.group, &resource.plural);
        lock(&self.monitors).iter().find(|(known, _)| is_meant(known)).and_then(|(_, health)| health.failing())
    }

    /// Whether the last read of a kind failed.
    pub fn is_unreadable(&self, resource: &Resource) -> bool {
        lock(&self.unreadable).contains(resource)
    }

    /// Notes whether a read of a kind failed. Logs the first failure, and the first success after it.
    pub(crate) fn note_read(&self, resource: &Resource, failure: Option<&str>) {
        let mut unreadable = lock(&self.unreadable);
        match failure {
            Some(error) if unreadable.insert(resource.clone()) => {
                tracing::warn!(%resource, error, "cannot read objects of a kind; their dependents wait");
            }
            None if unreadable.remove(resource) => tracing::info!(%resource, "objects of a kind can be read again"),
            Some(_) | None => {}
        }
    }

    /// How often an object was synced while it waited for a kind.
    pub fn looks(&self, uid: Uid) -> u32 {
        lock(&self.waiting).get(&uid).copied().unwrap_or_default()
    }

    pub(crate) fn stop_waiting(&self, uid: Uid) {
        lock(&self.waiting).remove(&uid);
    }

    /// Lets an object wait that was synced this often while only `served` was served. Returns when to sync it again at
    /// the latest, which is at once if other kinds are served by now.
    pub(crate) fn wait(&self, uid: Uid, looks: u32, served: &Arc<Discovery>) -> Duration {
        // Under the lock, so that `set_served` either is seen here or finds the object waiting.
        let mut waiting = lock(&self.waiting);
        if !Arc::ptr_eq(&self.served(), served) {
            return Duration::ZERO;
        }
        waiting.insert(uid, looks);
        UNSERVED.after(looks)
    }
}
