//! Looks for objects that were created under a name the server chose, where the answer with that name was lost.
//!
//! One list of the owner's namespace answers for every key of that namespace. Left out: creations under a fixed name,
//! which `AlreadyExists` answers at the next try.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::{Consistency, Goal, Written};
use crate::api::object::{Key, ResourceVersion, Uid};
use crate::api::resource::Resource;
use crate::following::source::Follow;
use crate::transport::api_error::ApiError;
use crate::transport::client::Accept;
use crate::transport::pages::{Selection, each_of};

/// The least time between two lookups of one namespace, and the most.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Lookups {
    lost: AtomicU64,
    /// When a namespace may be listed again.
    pub(super) due: Mutex<HashMap<(Resource, String), Instant>>,
}

impl Lookups {
    /// Counts a lost creation; gives its number.
    pub(super) fn count_lost(&self) -> u64 {
        self.lost.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Lookups take at most a tenth of the time, unless one takes longer than 3 s. A failed lookup costs the server little,
/// however long it took, so the server is asked again as soon as it is back.
fn pause_after(took: Duration, is_answered: bool) -> Duration {
    if is_answered { (took * 10).clamp(PAUSE_MIN, PAUSE_MAX) } else { PAUSE_MIN }
}

impl Consistency {
    /// Ends when it is known what the lost creations of `key` have made; the caches must then have seen it.
    pub(super) async fn look_up(&self, key: &Key) {
        loop {
            let mut due = self.lookups.due.lock().await;
            // The lookup for another key may have answered meanwhile.
            let Some(follow) = self.first_lost(key) else { return };
            let namespace = (follow.resource.clone(), key.namespace().to_owned());
            let now = Instant::now();
            if let Some(at) = due.get(&namespace).copied().filter(|at| *at > now) {
                drop(due);
                sleep_until(at).await;
                continue;
            }
            let looked = self.look_for(&follow, key.namespace()).await;
            let ended = Instant::now();
            due.retain(|_, at| *at > ended);
            due.insert(namespace, ended + pause_after(ended - now, looked.is_ok()));
            if let Err(error) = looked {
                tracing::warn!(resource = %follow.resource, %key, %error, "cannot look for what was created");
            }
        }
    }

    fn first_lost(&self, key: &Key) -> Option<Arc<Follow>> {
        self.written().by_key.get(key)?.lost.first().map(|lost| Arc::clone(&lost.follow))
    }

    /// Lists a namespace as its cache would, and answers every key of it that had lost a creation before.
    async fn look_for(&self, follow: &Arc<Follow>, namespace: &str) -> Result<(), ApiError> {
        let known = self.lookups.lost.load(Ordering::Relaxed);
        let list = follow.health.next_list();
        let mut newest: HashMap<Uid, ResourceVersion> = HashMap::new();
        let Follow { resource, field_selector, label_selector, .. } = &**follow;
        let selection = Selection { field_selector, label_selector, ..Selection::default() };
        each_of(&self.client, resource, namespace, selection, Accept::Metadata, |found: Written| {
            if let Some(owner) = found.metadata.controller_uid() {
                let version = newest.entry(owner).or_default();
                *version = found.metadata.resource_version.max(*version);
            }
        })
        .await?;
        let written = &mut self.written().by_key;
        for (_, record) in written.iter_mut().filter(|(key, _)| key.namespace() == namespace) {
            let lost = record.lost.len();
            record.lost.retain(|lost| lost.number > known || !Arc::ptr_eq(&lost.follow, follow));
            if record.lost.len() < lost
                && let Some(version) = newest.get(&record.uid)
            {
                record.add_goal(follow, Goal { version: *version, list, objects: None });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_is_spaced_by_what_it_took_unless_it_failed() {
        for (took, is_answered, pause) in [(0, true, 1), (2, true, 20), (60, true, 30), (0, false, 1), (60, false, 1)] {
            let paused = pause_after(Duration::from_secs(took), is_answered);
            assert_eq!(paused, Duration::from_secs(pause), "{took} s, {is_answered}");
        }
    }
}
