//! What is remembered between syncs: the pending deletions, the claims with tainted devices, and how many pods each
//! DeviceTaintRule has evicted.
//!
//! Times are no part of it: a taint says when it was added, so another process decides the same.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Uid};
use shared::api::time::Time;
use shared::following::informer::{Need, Needed};

/// A deletion that was decided and has not succeeded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub uid: Uid,
    pub due: Time,
    /// The DeviceTaintRules among its reasons, whose conditions count it.
    pub rules: Vec<Key>,
    /// Whether it was due, and an event has announced it.
    pub is_announced: bool,
}

/// The pending deletions, by pod. An event reports that one is canceled.
///
/// Upstream: `deletePodAt`, `pkg/controller/devicetainteviction/device_taint_eviction.go`.
pub struct Evictions {
    need: Need,
    entries: Mutex<BTreeMap<Key, (Pending, Needed)>>,
}

impl Evictions {
    /// No pending deletions; the pods of the namespace of each are followed through this need.
    pub(crate) fn new(need: Need) -> Self {
        Self { need, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, (Pending, Needed)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pending deletion of a pod of this key.
    pub fn get(&self, pod: &Key) -> Option<Pending> {
        self.entries().get(pod).map(|(pending, _)| pending.clone())
    }

    pub fn has(&self, pod: &Key) -> bool {
        self.entries().contains_key(pod)
    }

    pub(crate) fn remember(&self, pod: &Key, pending: Pending) {
        let needed = self.need.hold(pod.namespace());
        drop(self.entries().insert(pod.clone(), (pending, needed)));
    }

    pub(crate) fn forget(&self, pod: &Key) {
        drop(self.entries().remove(pod));
    }
}

/// The claims with a device whose taint may end pods. The pods of their namespaces are followed.
pub struct TaintedClaims {
    need: Need,
    claims: Mutex<BTreeMap<Key, Needed>>,
}

impl TaintedClaims {
    pub(crate) fn new(need: Need) -> Self {
        Self { need, claims: Mutex::default() }
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<Key, Needed>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has(&self, claim: &Key) -> bool {
        self.claims().contains_key(claim)
    }

    pub(crate) fn note(&self, claim: &Key, is_tainted: bool) {
        let mut claims = self.claims();
        if !is_tainted {
            drop(claims.remove(claim));
        } else if !claims.contains_key(claim) {
            claims.insert(claim.clone(), self.need.hold(claim.namespace()));
        }
    }
}

/// How many pods each DeviceTaintRule has evicted since this process began.
///
/// Upstream: `taintRuleStats`.
#[derive(Default)]
pub struct Evicted(Mutex<BTreeMap<Uid, u64>>);

impl Evicted {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<Uid, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(&self, rule: Uid) -> u64 {
        self.counts().get(&rule).copied().unwrap_or_default()
    }

    pub(crate) fn count(&self, rule: Uid) {
        *self.counts().entry(rule).or_default() += 1;
    }

    pub(crate) fn forget(&self, rule: Uid) {
        self.counts().remove(&rule);
    }
}
