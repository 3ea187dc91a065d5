//! The sync that runs: every line that is logged in it says its queue, its key and its attempt, and so does its trace.

use tracing::Instrument;

use crate::api::object::Key;

tokio::task_local! {
    static SYNC: Running;
}

/// What lines say of the sync in which they are logged.
pub(super) struct Running {
    pub(super) queue: &'static str,
    pub(super) key: Key,
    pub(super) attempt: u32,
}

/// Runs this sync, or a part of it.
pub(crate) fn in_sync<F: Future>(
    queue: &'static str,
    key: &Key,
    attempt: u32,
    syncing: F,
) -> impl Future<Output = F::Output> + use<F> {
    let span = tracing::info_span!("sync", queue, %key, attempt);
    SYNC.scope(Running { queue, key: key.clone(), attempt }, syncing.instrument(span))
}

/// Gives the sync that runs at the moment to `look`, if there is one.
pub(super) fn running(look: impl FnOnce(&Running)) {
    // Outside of a sync there is none to give.
    let _ = SYNC.try_with(look);
}
