//! Takes keys from a queue and syncs them, a few at a time; a sync that fails or panics concerns its own key only.
//!
//! Left out: what a sync does (each operator's `controller.rs`), and giving up: a key that fails is tried again, at
//! ever longer intervals, for as long as its object is there.

pub(crate) mod running;
pub(crate) mod trace;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use crate::api::explain::{Stage, Subject};
use crate::api::object::Key;
use crate::transport::api_error::{ApiError, OTHER_REASON};
use crate::transport::clock::Clock;
use crate::working::consistency::{Behind, Consistency};
use crate::working::decisions::Decisions;
use crate::working::queue::{Finish, Queue};
use running::in_sync;

/// When a key is synced again after a sync without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    Done,
    /// After this time, for this purpose, or at an earlier event: see [`Queue::add_after`].
    After(Duration, &'static str),
    /// At its next event, with all events of this time together: for objects that change in bursts and are written
    /// whole.
    Rest(Duration),
    /// After the queue's back-off, because the sync left something out; an event waits for this time only.
    Partly(Duration),
    /// After the queue's back-off, as after a failure: upstream's `AddRateLimited` without an error.
    RateLimited,
}

impl Requeue {
    /// At the earliest of these times, with what it is for; [`Self::Done`] where there is none.
    pub fn earliest(looks: impl IntoIterator<Item = Option<(Duration, &'static str)>>) -> Self {
        let first = looks.into_iter().flatten().min_by_key(|(delay, _)| *delay);
        first.map_or(Self::Done, |(delay, purpose)| Self::After(delay, purpose))
    }
}

impl From<Requeue> for Finish {
    fn from(requeue: Requeue) -> Self {
        match requeue {
            Requeue::Done => Self::Done,
            Requeue::After(delay, purpose) => Self::After(delay, purpose),
            Requeue::Rest(delay) => Self::Rest(delay),
            Requeue::Partly(apart) => Self::Partly(apart),
            Requeue::RateLimited => Self::Retry,
        }
    }
}

pub trait Controller: Send + Sync + 'static {
    /// Brings the cluster one step closer to the spec of the object of this key.
    fn sync(&self, key: &Key) -> impl Future<Output = anyhow::Result<Requeue>> + Send;

    /// The key under which this controller syncs the object; `None` if it does not act on this kind.
    fn key_of(&self, object: &Subject) -> Option<Key>;

    /// The stages that a sync of this key would decide now, up to the first that needs a write or a live read; none if
    /// the caches do not have the object. Must not change anything.
    fn preview(&self, key: &Key) -> Vec<Stage>;
}

/// Called with the resource whose cache has not seen a key's own writes, when the key is held for it.
pub(crate) type OnHeld = Box<dyn Fn(&str) + Send + Sync>;

/// Each running sync of an operator holds it for reading. Hold it for writing to keep syncs from running.
pub(crate) type Syncing = Arc<RwLock<()>>;

/// The state that the workers of one queue share.
pub(crate) struct Work<C> {
    pub(crate) controller: Arc<C>,
    pub(crate) queue: Queue,
    pub(crate) syncing: Syncing,
    pub(crate) consistency: Arc<Consistency>,
    pub(crate) on_held: Option<OnHeld>,
    pub(crate) decisions: Decisions,
    pub(crate) clock: Clock,
    pub(crate) panics: Arc<AtomicU64>,
}

impl<C: Controller> Work<C> {
    /// Runs `workers` syncs at a time until the queue is shut down and the running syncs have ended. A key is held
    /// until the caches have seen its own writes and every resource that it reads has been listed.
    pub(crate) async fn run(self, workers: usize) {
        let (work, mut tasks) = (Arc::new(self), JoinSet::new());
        for _ in 0..workers.max(1) {
            let work = Arc::clone(&work);
            tasks.spawn(async move {
                while let Some(key) = work.queue.next().await {
                    let _syncing = work.syncing.read().await;
                    if let Some(behind) = work.consistency.behind(&key) {
                        work.hold(key, behind);
                    } else {
                        work.sync(&key).await;
                    }
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// The key stays taken while it waits; its worker goes on with other keys.
    fn hold(&self, key: Key, behind: Behind) {
        for resource in behind.unlisted() {
            tracing::debug!(%key, resource, "held until the resource is listed");
        }
        for (resource, what) in behind.writes() {
            tracing::debug!(%key, resource, what, "held until the cache has seen its own write");
            if let Some(on_held) = &self.on_held {
                on_held(resource);
            }
        }
        let (queue, held) = (self.queue.clone(), self.queue.hold());
        tokio::spawn(async move {
            behind.caught_up().await;
            drop(held);
            queue.finish(&key, Finish::Again);
        });
    }

    async fn sync(&self, key: &Key) {
        let Self { controller, queue, syncing: _, consistency: _, on_held: _, decisions, clock, panics } = self;
        let attempt = queue.failures(key) + 1;
        let trigger = queue.trigger(key);
        let syncing = AssertUnwindSafe(controller.sync(key)).catch_unwind();
        let syncing = in_sync(queue, key, attempt, trigger.as_ref(), syncing);
        decisions.begin(clock.now(), key, trigger);
        let outcome = syncing.await;
        let finish = match outcome {
            Ok(Ok(requeue)) => {
                decisions.finish(key, Ok(()));
                requeue.into()
            }
            Ok(Err(error)) => {
                decisions.finish(key, Err(&format_args!("{error:#}")));
                let reason = reason(&error);
                queue.failed(reason);
                log(queue, key, attempt, reason, &error);
                Finish::Retry
            }
            Err(_) => {
                decisions.finish(key, Err(&"panicked"));
                panics.fetch_add(1, Ordering::Relaxed);
                queue.failed("Panic");
                tracing::error!(queue = queue.name(), %key, attempt, "the sync panicked");
                Finish::Retry
            }
        };
        queue.finish(key, finish);
    }
}

fn log(queue: &Queue, key: &Key, attempt: u32, reason: &str, error: &anyhow::Error) {
    let queue = queue.name();
    if reason == "Conflict" {
        tracing::debug!(queue, %key, attempt, error = format!("{error:#}"), "sync met a newer version");
    } else {
        tracing::warn!(queue, %key, attempt, error = format!("{error:#}"), "sync failed");
    }
}

/// Why the request failed that failed the sync. A sync can also fail without a request.
fn reason(error: &anyhow::Error) -> &'static str {
    error.chain().find_map(|cause| cause.downcast_ref::<ApiError>()).map_or(OTHER_REASON, ApiError::reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::intern::Text;
    use crate::api::labels::Labels;
    use crate::api::object::{ResourceVersion, Uid};
    use crate::api::resource::PODS;
    use crate::following::cache::Progress;
    use crate::following::health::Health;
    use crate::following::source::Follow;
    use crate::transport::api_error::Status;
    use crate::transport::client::{Client, ClientOptions};
    use crate::working::consistency::{Watched, Write};
    use crate::working::queue::{Backoff, Cause, Observer};
    use anyhow::Context;
    use std::sync::Mutex;
    use tokio::sync::{Notify, watch};

    /// Notes each sync; `sick` and `late` fail, `panics` panics, all others succeed.
    #[derive(Default)]
    struct Noting {
        synced: Mutex<Vec<String>>,
        more: Notify,
    }

    impl Controller for Noting {
        fn key_of(&self, object: &Subject) -> Option<Key> {
            Some(object.key())
        }

        fn preview(&self, _: &Key) -> Vec<Stage> {
            Vec::new()
        }

        async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
            self.synced.lock().unwrap().push(key.name().to_owned());
            self.more.notify_waiters();
            match key.name() {
                "sick" => anyhow::bail!("no"),
                "late" => {
                    Err(ApiError::Status(Box::new(Status { reason: "Conflict".to_owned(), ..Status::default() })))
                        .context("cannot write the status")
                }
                "panics" => panic!("on purpose"),
                _ => Ok(Requeue::Done),
            }
        }
    }

    fn nothing_written(watched: Watched) -> Arc<Consistency> {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        Arc::new(Consistency::new(client, watched))
    }

    fn work(controller: &Arc<Noting>, queue: &Queue, consistency: Arc<Consistency>) -> Work<Noting> {
        Queue::start(std::slice::from_ref(queue), || {});
        Work {
            controller: Arc::clone(controller),
            queue: queue.clone(),
            syncing: Syncing::default(),
            consistency,
            on_held: None,
            decisions: Decisions::default(),
            clock: Clock::system(),
            panics: Arc::default(),
        }
    }

    /// Notes why syncs fail.
    #[derive(Clone, Default)]
    struct Reasons(Arc<Mutex<Vec<&'static str>>>);

    impl Observer for Reasons {
        fn added(&self) {}
        fn depth(&self, _: usize) {}
        fn dequeued(&self, _: Duration) {}
        fn worked(&self, _: Duration) {}
        fn retried(&self) {}
        fn failed(&self, reason: &'static str) {
            self.0.lock().unwrap().push(reason);
        }
        fn wrote(&self, _: Duration) {}
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_told_why_each_sync_failed() {
        let reasons = Reasons::default();
        let queue = Queue::new("test", Backoff::default(), Some(Box::new(reasons.clone())));
        let controller = Arc::new(Noting::default());
        let running = tokio::spawn(work(&controller, &queue, nothing_written(Watched::default())).run(1));
        for (name, reason) in [("late", "Conflict"), ("sick", "Other"), ("panics", "Panic"), ("well", "Panic")] {
            queue.add(&Key::new("ns", name), Cause::Event);
            while !controller.synced.lock().unwrap().iter().any(|synced| synced == name) {
                controller.more.notified().await;
            }
            tokio::task::yield_now().await;
            assert_eq!(reasons.0.lock().unwrap().last(), Some(&reason), "after {name}");
        }
        queue.shut_down();
        running.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_counts_as_held_until_the_cache_has_seen_its_write() {
        let (queue, controller) = (Queue::new("test", Backoff::default(), None), Arc::new(Noting::default()));
        let (progress, watched) = (watch::Sender::<Progress>::default(), Watched::default());
        watched.add(Follow {
            resource: PODS,
            namespace: Text::default(),
            field_selector: "".into(),
            label_selector: "".into(),
            progress: progress.subscribe(),
            health: Arc::new(Health::new("pods".to_owned())),
            version_of: Arc::new(|_| None),
        });
        let (key, consistency) = (Key::new("ns", "web"), nothing_written(watched));
        let write = Write { object: &key, version: ResourceVersion(8), created_with: Some(&Labels::default()) };
        consistency.record(&key, Uid::default(), &PODS, write);
        let running = tokio::spawn(work(&controller, &queue, consistency).run(1));
        queue.add(&key, Cause::Event);
        while queue.held() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(controller.synced.lock().unwrap().is_empty());
        progress.send_modify(|progress| progress.resource_version = ResourceVersion(8));
        controller.more.notified().await;
        assert_eq!(queue.held(), 0);
        queue.shut_down();
        running.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_and_a_panicking_key_are_retried_and_others_go_on() {
        let queue = Queue::new("test", Backoff::default(), None);
        let controller = Arc::new(Noting::default());
        let work = work(&controller, &queue, nothing_written(Watched::default()));
        let panics = Arc::clone(&work.panics);
        let running = tokio::spawn(work.run(2));
        for name in ["sick", "panics", "well"] {
            queue.add(&Key::new("ns", name), Cause::Event);
        }
        let count = |name: &str| controller.synced.lock().unwrap().iter().filter(|synced| *synced == name).count();
        while count("sick") < 3 || count("panics") < 3 {
            controller.more.notified().await;
        }
        queue.add(&Key::new("ns", "more"), Cause::Event);
        while count("more") < 1 {
            controller.more.notified().await;
        }
        queue.shut_down();
        running.await.unwrap();
        assert_eq!(count("well"), 1);
        assert!(panics.load(Ordering::Relaxed) >= 3);
    }
}
