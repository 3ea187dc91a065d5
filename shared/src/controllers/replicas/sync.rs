//! What the controllers of both kinds wire together: informers, handlers, the writer, and when to look again.
//!
//! Left out: the sync itself, which each operator's `controller.rs` shows on one screen.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::Timestamp;

use super::ReplicaOwner;
use super::apply::{Outcome, Writer};
use super::observe::{Caches, Informers, Observed};
use super::status::{MIN_READY, ReplicaStatus, next_check};
use crate::controllers::pod_control::PodControl;
use crate::runtime::queue::Queue;
use crate::runtime::run::Setup;
use crate::runtime::worker::Requeue;

/// Declares that owners are followed, and pods while there is an owner; that what changes them fills `queue`. Gives what
/// a sync reads and what it writes with.
pub fn follow<T: ReplicaOwner>(setup: &mut Setup, queue: &Queue) -> (Arc<Caches<T>>, Writer) {
    let (caches, Informers { mut owners, mut pods }) = Caches::new();
    let caches = Arc::new(caches);
    let control = setup.control(queue);
    let writer = Writer {
        pods: PodControl::new(control.clone(), setup.recorder()),
        control,
        expectations: setup.expectations(queue),
        clock: setup.clock(),
        drops_terminating: AtomicBool::default(),
    };
    let effects = setup.effects(queue);
    owners.on_change(effects.of(&caches, Caches::owner_changed));
    pods.on_change(effects.of(&caches, Caches::pod_changed));
    let need = owners.need(|_| true);
    setup.watch(owners);
    if T::ARE_COMMON {
        setup.watch_while(pods, &need);
    } else {
        setup.watch_beside(pods, &need);
    }
    (caches, writer)
}

/// The error of a sync, or when to look at its owner again, should nothing happen: when a pod becomes available by the
/// passing of time, or when what it waits for is taken as lost.
pub fn requeue<T: ReplicaOwner>(
    observed: &Observed<T>,
    outcome: Outcome,
    status: Option<&ReplicaStatus>,
    now: Timestamp,
) -> anyhow::Result<Requeue> {
    let available = status
        .and_then(|status| next_check(observed.owner.spec(), &outcome, status, now))
        .map(|at| Duration::try_from(now.duration_until(at.timestamp())).unwrap_or_default());
    let Outcome { claimed: _, failure, error } = outcome;
    if let Some(error) = error.or_else(|| failure.map(anyhow::Error::msg)) {
        return Err(error);
    }
    let expired = observed.outstanding.map(|outstanding| outstanding.remaining(now));
    let available = available.map(|delay| (delay, MIN_READY));
    Ok(Requeue::earliest([available, expired.map(|delay| (delay, "events that may be lost"))]))
}
