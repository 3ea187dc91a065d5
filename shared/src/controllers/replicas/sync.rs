//! What the controllers of both kinds wire together: informers, handlers, the writer, and when to look again.
//!
//! Left out: the sync itself, which each operator's `controller.rs` shows on one screen.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::Timestamp;

use super::apply::Writer;
use super::caches::{Caches, Effect};
use super::status::{ReplicaStatus, next_check};
use super::{Observed, Outcome, ReplicaOwner};
use crate::controllers::pod_control::PodControl;
use crate::runtime::expectations::Expectations;
use crate::runtime::queue::Queue;
use crate::runtime::run::Setup;
use crate::runtime::worker::Requeue;

/// Declares that owners and pods are followed and that what changes them fills `queue`; gives what a sync reads and
/// what it writes with.
pub fn follow<T: ReplicaOwner>(setup: &mut Setup, queue: &Queue) -> (Arc<Caches<T>>, Writer) {
    let (caches, mut owners, mut pods) = Caches::new();
    let caches = Arc::new(caches);
    let control = setup.control(queue);
    let writer = Writer {
        pods: PodControl::new(control.clone(), setup.recorder()),
        control,
        expectations: Arc::new(Expectations::new()),
        clock: setup.clock(),
        drops_terminating: AtomicBool::default(),
    };
    let expectations = Arc::clone(&writer.expectations);
    setup.on_restore(move || expectations.start_over());
    let (known, take) = (Arc::clone(&caches), taker(&writer, queue));
    owners.on_change(move |change| known.owner_changed(change).into_iter().for_each(&take));
    let (known, take) = (Arc::clone(&caches), taker(&writer, queue));
    pods.on_change(move |change| known.pod_changed(change).into_iter().for_each(&take));
    setup.watch(owners);
    setup.watch(pods);
    (caches, writer)
}

fn taker(writer: &Writer, queue: &Queue) -> impl Fn(Effect) + Send + Sync + 'static {
    let (expectations, control) = (Arc::clone(&writer.expectations), writer.control.clone());
    let queue = queue.clone();
    move |effect| effect.take(&expectations, &control, &queue)
}

/// When to look at an owner again, should nothing happen: when a pod becomes available by the passing of time, or when
/// what it waits for is taken as lost.
pub fn requeue<T: ReplicaOwner>(
    observed: &Observed<T>,
    outcome: &Outcome,
    status: &ReplicaStatus,
    now: Timestamp,
) -> Requeue {
    let available = next_check(observed.owner.spec(), outcome, status, now)
        .map(|at| Duration::try_from(now.duration_until(at.timestamp())).unwrap_or_default());
    let expired = observed.outstanding.map(|outstanding| outstanding.remaining(now));
    available.into_iter().chain(expired).min().map_or(Requeue::Done, Requeue::After)
}
