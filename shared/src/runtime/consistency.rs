//! Read your writes: a key waits until the caches have seen what its last sync wrote.
//!
//! Without this, a sync that reads a cache older than its own writes makes the same pod twice. Upstream fails such a
//! sync and retries it with back-off; here the key is held, without a worker, and the very event or bookmark that
//! carries the version wakes it.
//! Left out: deletes. Their effect is tracked by [`crate::runtime::expectations`], as upstream does.
//!
//! Upstream: KEP-5647, pkg/controller/util/consistency.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use crate::api::object::{Key, ResourceVersion, Uid};
use crate::runtime::cache::Progress;
use crate::runtime::informer::Health;

/// How long a cache may stay behind before its watch is taken for dead.
const STALL: Duration = Duration::from_secs(5);

/// How to follow the progress of one informer; [`crate::runtime::informer::Informer::follow`] gives it.
#[derive(Clone)]
pub struct Follow {
    pub(crate) progress: Receiver<Progress>,
    pub(crate) health: Arc<Health>,
}

impl Follow {
    /// Whether the informer still runs: one that was stopped has nothing more to tell.
    pub(crate) fn is_running(&self) -> bool {
        self.progress.has_changed().is_ok()
    }
}

/// Names one followed informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(usize);

/// The newest versions this process wrote, by the key whose sync wrote them.
#[derive(Default)]
pub struct Consistency {
    sources: Vec<Follow>,
    written: Arc<Mutex<HashMap<Key, Record>>>,
}

struct Record {
    uid: Uid,
    goals: Vec<(Source, Goal)>,
}

/// What a cache must have reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Goal {
    /// This version.
    Version(ResourceVersion),
    /// The list of this number: see [`Health::relist`].
    List(u64),
}

impl Goal {
    fn is_reached(self, progress: &Progress) -> bool {
        match self {
            Self::Version(version) => progress.resource_version >= version,
            Self::List(list) => progress.list >= list,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "version {version}"),
            Self::List(_) => f.write_str("a new list"),
        }
    }
}

impl Consistency {
    /// Adds an informer whose resource is written.
    pub fn follow(&mut self, follow: Follow) -> Source {
        self.sources.push(follow);
        Source(self.sources.len() - 1)
    }

    fn written(&self) -> MutexGuard<'_, HashMap<Key, Record>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the sync of `key`, an object of this uid, wrote `version` of an object that `source` follows.
    /// A record of another uid is replaced.
    pub fn record(&self, key: &Key, uid: Uid, source: Source, version: ResourceVersion) {
        self.aim(key, uid, source, Goal::Version(version));
    }

    /// Notes that a write of `key`'s sync may or may not have happened: its answer was lost. Everything `source` follows
    /// is listed anew, and the key waits for that, so that it neither repeats nor misses the write.
    pub fn doubt(&self, key: &Key, uid: Uid, source: Source) {
        if let Some(follow) = self.sources.get(source.0) {
            self.aim(key, uid, source, Goal::List(follow.health.relist()));
        }
    }

    fn aim(&self, key: &Key, uid: Uid, source: Source, goal: Goal) {
        let mut written = self.written();
        let record = written.entry(key.clone()).or_insert_with(|| Record { uid, goals: Vec::new() });
        if record.uid != uid {
            *record = Record { uid, goals: Vec::new() };
        }
        let same = |known: Goal| std::mem::discriminant(&known) == std::mem::discriminant(&goal);
        match record.goals.iter_mut().find(|(of, known)| *of == source && same(*known)) {
            Some((_, known)) => *known = goal.max(*known),
            None => record.goals.push((source, goal)),
        }
    }

    /// Forgets what was written for `key`; with a uid only if it was written for that object.
    pub fn clear(&self, key: &Key, uid: Option<Uid>) {
        let mut written = self.written();
        if written.get(key).is_some_and(|record| uid.is_none_or(|uid| uid == record.uid)) {
            written.remove(key);
        }
    }

    /// None when the caches have seen all that was written for `key`, which is then forgotten. Otherwise what is still
    /// to be seen, to be awaited.
    pub fn behind(&self, key: &Key) -> Option<Behind> {
        let mut written = self.written();
        let record = written.get(key)?;
        let waits: Vec<Wait> = record
            .goals
            .iter()
            .filter_map(|(source, goal)| {
                self.sources.get(source.0).map(|follow| Wait { source: *source, follow: follow.clone(), goal: *goal })
            })
            .filter(|wait| !wait.goal.is_reached(&wait.follow.progress.borrow()))
            .collect();
        if waits.is_empty() {
            written.remove(key);
            return None;
        }
        Some(Behind { key: key.clone(), waits, written: Arc::clone(&self.written) })
    }
}

/// Writes that the caches have not seen yet.
pub struct Behind {
    key: Key,
    waits: Vec<Wait>,
    written: Arc<Mutex<HashMap<Key, Record>>>,
}

struct Wait {
    source: Source,
    follow: Follow,
    goal: Goal,
}

impl Behind {
    /// The resources whose caches are behind, and what they must reach.
    pub fn resources(&self) -> impl Iterator<Item = (&str, impl fmt::Display)> {
        self.waits.iter().map(|wait| (wait.follow.health.resource.as_str(), wait.goal))
    }

    /// Ends when the caches have caught up. A watch that stays silent is reconnected, and if that does not help the
    /// whole resource is listed anew: a list that began after the write has seen it, whatever its version says.
    pub async fn caught_up(self) {
        let Self { key, waits, written } = self;
        for Wait { source, follow, goal } in waits {
            let Follow { mut progress, health } = follow;
            let mut list = None;
            for attempt in 0_u32.. {
                let listed = |now: &Progress| list.is_some_and(|list| Goal::List(list).is_reached(now));
                let seen = progress.wait_for(|now| goal.is_reached(now) || listed(now));
                if timeout(STALL, seen).await.is_ok() {
                    break;
                }
                tracing::warn!(resource = health.resource, %goal, attempt, "own write not seen in time");
                if attempt == 1 {
                    list = Some(health.relist());
                } else {
                    health.reconnect();
                }
            }
            if list.is_some() {
                // Seen by a list, perhaps under a lower version: the key must not wait for this one again.
                let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(record) = written.get_mut(&key) {
                    record.goals.retain(|known| *known != (source, goal));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::informer::Health;
    use futures::FutureExt;
    use tokio::sync::watch;

    fn followed() -> (Consistency, Source, watch::Sender<Progress>, Arc<Health>) {
        let (sender, health) = (watch::Sender::new(Progress::default()), Arc::new(Health::new("pods".to_owned())));
        let mut consistency = Consistency::default();
        let source = consistency.follow(Follow { progress: sender.subscribe(), health: Arc::clone(&health) });
        (consistency, source, sender, health)
    }

    fn seen(version: u64) -> impl FnOnce(&mut Progress) {
        move |progress| progress.resource_version = ResourceVersion(version)
    }

    fn texts(behind: &Behind) -> Vec<String> {
        behind.resources().map(|(resource, goal)| format!("{resource} {goal}")).collect()
    }

    #[tokio::test]
    async fn a_key_in_doubt_waits_for_a_new_list_however_new_the_version() {
        let (consistency, pods, sender, health) = followed();
        let key = Key::new("ns", "web");
        consistency.doubt(&key, Uid::parse("a"), pods);
        assert_eq!(health.wanted_list(), 1);
        sender.send_modify(seen(99));
        let behind = consistency.behind(&key).unwrap();
        assert_eq!(texts(&behind), ["pods a new list"]);
        sender.send_modify(|progress| progress.list = 1);
        behind.caught_up().await;
        assert!(consistency.behind(&key).is_none());
    }

    #[tokio::test]
    async fn a_key_waits_for_the_newest_of_its_writes() {
        let (consistency, pods, sender, _) = followed();
        let (key, uid) = (Key::new("ns", "web"), Uid::parse("a"));
        assert!(consistency.behind(&key).is_none(), "nothing was written");
        consistency.record(&key, uid, pods, ResourceVersion(7));
        consistency.record(&key, uid, pods, ResourceVersion(5));
        let behind = consistency.behind(&key).unwrap();
        assert_eq!(texts(&behind), ["pods version 7"]);
        let mut wait = Box::pin(behind.caught_up());
        sender.send_modify(seen(6));
        assert!((&mut wait).now_or_never().is_none());
        sender.send_modify(seen(7));
        wait.await;
        assert!(consistency.behind(&key).is_none());
    }

    #[tokio::test]
    async fn another_object_of_the_same_name_waits_for_nothing() {
        let (consistency, pods, ..) = followed();
        let (key, old, new) = (Key::new("ns", "web"), Uid::parse("old"), Uid::parse("new"));
        consistency.record(&key, old, pods, ResourceVersion(7));
        consistency.clear(&key, Some(new));
        assert!(consistency.behind(&key).is_some(), "cleared for another uid");
        consistency.record(&key, new, pods, ResourceVersion(3));
        let behind = consistency.behind(&key).unwrap();
        assert_eq!(texts(&behind), ["pods version 3"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_watch_is_broken_by_a_list_that_began_later() {
        let (consistency, pods, sender, health) = followed();
        let key = Key::new("ns", "web");
        consistency.record(&key, Uid::parse("a"), pods, ResourceVersion(7));
        let wait = tokio::spawn(consistency.behind(&key).unwrap().caught_up());
        tokio::time::sleep(STALL * 2 + Duration::from_secs(1)).await;
        assert_eq!(health.wanted_list(), 1, "a list was asked for");
        assert!(!wait.is_finished());
        sender.send_modify(|progress| progress.list = 1);
        wait.await.unwrap();
        // The version is not reached and may not be for long: an etcd that was restored counts from a lower one.
        assert!(consistency.behind(&key).is_none(), "the list has seen the write");
    }
}
