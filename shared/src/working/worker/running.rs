//! The running sync: log lines and traces name its queue, its key and its attempt.

use tracing::Instrument;

use crate::api::object::Key;

tokio::task_local! {
    static SYNC: Running;
}

/// A running sync, as log lines and traces name it.
pub(crate) struct Running {
    pub(crate) queue: &'static str,
    pub(crate) key: Key,
    pub(crate) attempt: u32,
}

pub(crate) fn in_sync<F: Future>(
    queue: &'static str,
    key: &Key,
    attempt: u32,
    syncing: F,
) -> impl Future<Output = F::Output> + use<F> {
    let span = tracing::info_span!("sync", queue, %key, attempt);
    SYNC.scope(Running { queue, key: key.clone(), attempt }, syncing.instrument(span))
}

/// Give the running sync to `look`, if there is one.
pub(crate) fn running(look: impl FnOnce(&Running)) {
    // Outside of a sync there is none to give.
    let _ = SYNC.try_with(look);
}
