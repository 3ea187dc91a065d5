//! The queue's promises, with tokio's paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::api::object::ResourceVersion;
use crate::api::resource::{PODS, Resource};
use futures::FutureExt;
use proptest::prelude::*;

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

fn queue() -> Queue {
    started(Queue::new("test", Backoff { first: Duration::from_millis(100), max: Duration::from_secs(1) }, None))
}

fn started(queue: Queue) -> Queue {
    Queue::start(std::slice::from_ref(&queue), || {});
    queue
}

/// The key that [`Queue::next`] gives at this instant.
fn poll(queue: &Queue) -> Option<String> {
    queue.next().now_or_never().flatten().map(|key| key.name().to_owned())
}

async fn pass(millis: u64) {
    tokio::time::advance(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_once_and_is_not_processed_twice_at_once() {
    let queue = queue();
    queue.add(&key("a"), Cause::Event);
    queue.add(&key("a"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.add(&key("a"), Cause::Event);
    assert_eq!(poll(&queue), None, "it is being processed");
    queue.finish(&key("a"), Finish::Done);
    assert_eq!(poll(&queue).as_deref(), Some("a"), "it was added meanwhile");
    queue.finish(&key("a"), Finish::Done);
    assert_eq!(poll(&queue), None);
    assert!(queue.state().keys.is_empty(), "nothing is remembered of a key without work");
}

#[tokio::test(start_paused = true)]
async fn what_many_keys_needed_is_given_back() {
    let queue = queue();
    let keys: Vec<Key> = (0..1000).map(|at| key(&at.to_string())).collect();
    for key in &keys {
        queue.add(key, Cause::Event);
    }
    assert!(queue.state().keys.capacity() >= 1000);
    for key in &keys {
        assert_eq!(poll(&queue).as_deref(), Some(key.name()));
        queue.finish(key, Finish::Done);
    }
    assert!(queue.state().keys.capacity() <= ROOM_MIN);
    assert!(queue.state().events.capacity() <= ROOM_MIN);
}

/// Counts what `workqueue_adds_total` and `workqueue_retries_total` count.
#[derive(Clone, Default)]
struct Counts(Arc<[AtomicUsize; 2]>);

impl Counts {
    fn added(&self) -> usize {
        self.0[0].load(Ordering::Relaxed)
    }

    fn retried(&self) -> usize {
        self.0[1].load(Ordering::Relaxed)
    }
}

impl Observer for Counts {
    fn added(&self) {
        self.0[0].fetch_add(1, Ordering::Relaxed);
    }
    fn depth(&self, _: usize) {}
    fn dequeued(&self, _: Duration) {}
    fn worked(&self, _: Duration) {}
    fn retried(&self) {
        self.0[1].fetch_add(1, Ordering::Relaxed);
    }
    fn failed(&self, _: &'static str) {}
    fn wrote(&self, _: Duration) {}
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_stalled_while_keys_wait_and_no_sync_ends() {
    let (queue, seconds) = (queue(), Duration::from_secs);
    queue.add(&key("a"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    pass(60_000).await;
    assert_eq!(queue.stalled(), Duration::ZERO, "no key waits");
    queue.add(&key("b"), Cause::Event);
    pass(30_000).await;
    queue.add(&key("c"), Cause::Edit);
    pass(30_000).await;
    assert_eq!(queue.stalled(), seconds(60));
    queue.finish(&key("a"), Finish::Done);
    pass(1_000).await;
    assert_eq!(queue.stalled(), seconds(1));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_already_is_not_counted_as_added_again() {
    let counts = Counts::default();
    let queue = started(Queue::new("test", Backoff::default(), Some(Box::new(counts.clone()))));
    for cause in [Cause::Event, Cause::Event, Cause::Edit, Cause::Edit] {
        queue.add(&key("a"), cause);
    }
    assert_eq!((counts.added(), queue.len()), (1, 1));
    assert_eq!(poll(&queue).as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn of_two_delays_the_earlier_counts_and_an_add_cancels_none() {
    let queue = queue();
    queue.add_after(&key("a"), Duration::from_secs(5), "");
    queue.add_after(&key("a"), Duration::from_secs(2), "");
    queue.add_after(&key("a"), Duration::from_secs(9), "");
    queue.add(&key("a"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Done);
    pass(1_999).await;
    assert_eq!(poll(&queue), None);
    pass(1).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Done);
    pass(60_000).await;
    assert_eq!(poll(&queue), None, "the later delays were merged into the earliest");
}

#[tokio::test(start_paused = true)]
async fn a_key_at_rest_takes_all_events_at_the_end_and_an_edit_at_once() {
    let queue = queue();
    let work = |how| {
        assert_eq!(poll(&queue).as_deref(), Some("a"));
        queue.finish(&key("a"), how);
    };
    queue.add(&key("a"), Cause::Event);
    work(Finish::Rest(Duration::from_millis(100)));
    for _ in 0..3 {
        pass(30).await;
        queue.add(&key("a"), Cause::Event);
        assert_eq!(poll(&queue), None, "it rests");
    }
    pass(10).await;
    work(Finish::Rest(Duration::from_millis(100)));
    queue.add(&key("a"), Cause::Edit);
    work(Finish::Rest(Duration::from_millis(100)));
    pass(100).await;
    assert_eq!(poll(&queue), None, "nothing happened while it rested");
    queue.add(&key("a"), Cause::Event);
    work(Finish::Done);
    assert!(queue.state().keys.is_empty(), "nothing is remembered of a key that has rested");
}

/// A waiter that found no timer must be woken when one is set.
#[tokio::test(start_paused = true)]
async fn an_event_in_a_rest_is_seen_by_who_waits_already() {
    let queue = queue();
    queue.add(&key("a"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Rest(Duration::from_millis(100)));
    let mut waiting = Box::pin(queue.next());
    assert!(waiting.as_mut().now_or_never().is_none());
    queue.add(&key("a"), Cause::Event);
    let taken = tokio::time::timeout(Duration::from_millis(150), waiting).await;
    assert_eq!(taken, Ok(Some(key("a"))));
}

/// A field of somebody's object may ask for any delay.
#[tokio::test(start_paused = true)]
async fn a_delay_without_end_is_one() {
    let queue = queue();
    queue.add_after(&key("a"), Duration::MAX, "");
    queue.add(&key("b"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("b"));
    queue.finish(&key("b"), Finish::After(Duration::MAX, ""));
    pass(1_000_000).await;
    assert_eq!(poll(&queue), None);
    queue.add(&key("b"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("b"));
}

/// Fails a key at each of its tries for as long as `until`, in milliseconds, and gives when it was taken, and as which
/// attempt. `events` is when events of it came.
async fn tries(queue: &Queue, events: &[u64], how: Finish, until: u64) -> Vec<(u64, u32)> {
    let mut taken = Vec::new();
    queue.add(&key("a"), Cause::Event);
    for now in 0..=until {
        if events.contains(&now) {
            queue.add(&key("a"), Cause::Event);
        }
        if poll(queue).is_some() {
            taken.push((now, queue.failures(&key("a")) + 1));
            queue.finish(&key("a"), how);
        }
        pass(1).await;
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn failures_wait_ever_longer_up_to_the_cap() {
    let taken = tries(&queue(), &[], Finish::Retry, 4_000).await;
    assert_eq!(taken, [(0, 1), (100, 2), (300, 3), (700, 4), (1_500, 5), (2_500, 6), (3_500, 7)]);
}

/// A back-off of 2, 4, 8 and 16 s, up to 30 s, as a failing ReplicaSet's after a while.
fn slow_queue() -> Queue {
    started(Queue::new("test", Backoff { first: Duration::from_secs(2), max: Duration::from_secs(30) }, None))
}

#[tokio::test(start_paused = true)]
async fn an_event_in_a_backoff_leads_to_a_sync_that_moves_nothing() {
    let taken = tries(&slow_queue(), &[1_500, 2_100, 4_500], Finish::Retry, 15_000).await;
    // Events within a second of a sync wait for the rest of it, and the tries are due as they were without events.
    assert_eq!(taken, [(0, 1), (1_500, 2), (2_000, 2), (3_000, 3), (4_500, 3), (6_000, 3), (14_000, 4)]);
}

#[tokio::test(start_paused = true)]
async fn many_events_in_a_backoff_lead_to_one_sync_a_second() {
    let events: Vec<u64> = (2_000..5_500).collect();
    let taken = tries(&slow_queue(), &events, Finish::Retry, 14_000).await;
    assert_eq!(taken, [(0, 1), (2_000, 2), (3_000, 3), (4_000, 3), (5_000, 3), (6_000, 3), (14_000, 4)]);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_key_that_is_partly_done_wait_for_its_rest_only() {
    let rest = Finish::Partly(Duration::from_millis(100));
    let taken = tries(&slow_queue(), &[50, 150, 1_000], rest, 7_000).await;
    assert_eq!(taken, [(0, 1), (100, 2), (200, 2), (1_000, 2), (2_000, 2), (6_000, 3)]);
}

#[tokio::test(start_paused = true)]
async fn an_event_while_a_key_fails_leads_to_a_sync_a_second_later() {
    let queue = slow_queue();
    queue.add(&key("a"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.add(&key("a"), Cause::Event);
    queue.finish(&key("a"), Finish::Retry);
    pass(999).await;
    assert_eq!(poll(&queue), None);
    pass(1).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
}

/// An extra sync may take longer than it is until the next try.
#[tokio::test(start_paused = true)]
async fn a_try_that_comes_due_during_an_extra_sync_follows_it() {
    let queue = slow_queue();
    queue.add(&key("a"), Cause::Event);
    poll(&queue);
    queue.finish(&key("a"), Finish::Retry);
    pass(1_500).await;
    queue.add(&key("a"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    pass(5_000).await;
    queue.finish(&key("a"), Finish::Retry);
    assert_eq!((poll(&queue).as_deref(), queue.failures(&key("a"))), (Some("a"), 1));
    queue.finish(&key("a"), Finish::Retry);
    assert_eq!((poll(&queue), queue.failures(&key("a"))), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn the_success_of_an_extra_sync_ends_the_backoff() {
    let counts = Counts::default();
    let backoff = Backoff { first: EVENTS_APART * 5, max: EVENTS_APART * 30 };
    let queue = started(Queue::new("test", backoff, Some(Box::new(counts.clone()))));
    queue.add(&key("a"), Cause::Event);
    for how in [Finish::Retry, Finish::Retry, Finish::Done] {
        assert_eq!(poll(&queue).as_deref(), Some("a"));
        queue.finish(&key("a"), how);
        pass(1_000).await;
        queue.add(&key("a"), Cause::Event);
    }
    assert_eq!(queue.failures(&key("a")), 0);
    assert_eq!(counts.retried(), 1, "the extra sync that failed has set no new try");
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Done);
    // The timer of the try that is not due any more.
    pass(60_000).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Done);
    assert!(queue.state().keys.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_edit_ends_a_backoff() {
    let queue = queue();
    queue.add(&key("a"), Cause::Event);
    for _ in 0..5 {
        assert_eq!(poll(&queue).as_deref(), Some("a"));
        queue.finish(&key("a"), Finish::Retry);
        pass(1_000).await;
    }
    poll(&queue);
    queue.finish(&key("a"), Finish::Retry);
    queue.add(&key("a"), Cause::Edit);
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Retry);
    assert_eq!(queue.failures(&key("a")), 1, "the failures of what was asked before do not count");
}

#[tokio::test(start_paused = true)]
async fn an_edit_during_a_failing_sync_is_tried_at_once() {
    let queue = queue();
    queue.add(&key("a"), Cause::Event);
    poll(&queue);
    queue.add(&key("a"), Cause::Edit);
    queue.finish(&key("a"), Finish::Retry);
    assert_eq!(poll(&queue).as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_held_key_keeps_its_failures() {
    let queue = queue();
    queue.add(&key("a"), Cause::Event);
    poll(&queue);
    queue.finish(&key("a"), Finish::Retry);
    pass(100).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Again);
    assert_eq!(poll(&queue).as_deref(), Some("a"), "at once");
    assert_eq!(queue.failures(&key("a")), 1);
}

#[tokio::test(start_paused = true)]
async fn a_timer_fires_while_another_worker_is_busy() {
    let queue = queue();
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { (queue.next().await, queue.next().await) }
    });
    tokio::task::yield_now().await;
    queue.add(&key("busy"), Cause::Event);
    queue.add_after(&key("timer"), Duration::from_secs(1), "");
    let (first, second) = waiting.await.unwrap();
    assert_eq!((first.unwrap().name(), second.unwrap().name()), ("busy", "timer"));
}

#[tokio::test(start_paused = true)]
async fn edits_overtake_but_starve_nobody() {
    let queue = queue();
    for name in ["e1", "e2", "e3"] {
        queue.add(&key(name), Cause::Event);
    }
    for name in ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"] {
        queue.add(&key(name), Cause::Edit);
    }
    queue.add(&key("e3"), Cause::Edit);
    let order: Vec<String> = std::iter::from_fn(|| poll(&queue)).collect();
    assert_eq!(order, ["s1", "s2", "s3", "s4", "e1", "s5", "s6", "s7", "s8", "e2", "s9", "e3"]);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_wakes_everybody() {
    let queue = queue();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for waiter in waiting {
        assert_eq!(waiter.await.unwrap(), None);
    }
    queue.add(&key("a"), Cause::Edit);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_queue_keeps_nothing_until_work_starts() {
    let counts = Counts::default();
    let queue = Queue::new("test", Backoff::default(), Some(Box::new(counts.clone())));
    for name in 0..1_000 {
        queue.add(&key(&name.to_string()), Cause::Edit);
        queue.add_after(&key(&name.to_string()), Duration::from_secs(1), "");
    }
    pass(2_000).await;
    assert_eq!((poll(&queue), queue.len(), counts.added()), (None, 0, 0));
    assert!(queue.state().keys.is_empty() && queue.state().timers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_there_when_work_starts_is_no_edit() {
    let queue = Queue::new("test", Backoff::default(), None);
    Queue::start(std::slice::from_ref(&queue), || {
        for name in ["a", "b", "c"] {
            queue.add(&key(name), Cause::Edit);
        }
        queue.add_after(&key("timer"), Duration::from_millis(1), "");
    });
    queue.add(&key("edit"), Cause::Edit);
    pass(1).await;
    let order: Vec<String> = std::iter::from_fn(|| poll(&queue)).collect();
    assert_eq!(order, ["edit", "a", "b", "c", "timer"]);
}

proptest! {
    /// No key that was added is ever forgotten, and none is handed out twice at once.
    #[test]
    fn every_added_key_is_handed_out(steps in proptest::collection::vec((0_u8..4, 0_u8..6), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let queue = queue();
            let mut owed = BTreeSet::new();
            let mut running = BTreeSet::new();
            for (name, step) in steps {
                let key = key(&name.to_string());
                match step {
                    0 => { queue.add(&key, Cause::Event); owed.insert(key); }
                    1 => { queue.add(&key, Cause::Edit); owed.insert(key); }
                    2 => { queue.add_after(&key, Duration::from_millis(50), ""); owed.insert(key); }
                    3 => if let Some(taken) = queue.next().now_or_never().flatten() {
                        owed.remove(&taken);
                        assert!(running.insert(taken));
                    },
                    4 => if let Some(taken) = running.pop_first() { queue.finish(&taken, Finish::Done); },
                    _ => if let Some(taken) = running.pop_first() {
                        queue.finish(&taken, Finish::Retry);
                        owed.insert(taken);
                    },
                }
                pass(10).await;
            }
            for taken in std::mem::take(&mut running) {
                queue.finish(&taken, Finish::Done);
            }
            pass(5_000).await;
            while let Some(taken) = queue.next().now_or_never().flatten() {
                owed.remove(&taken);
                queue.finish(&taken, Finish::Done);
            }
            assert!(owed.is_empty(), "never handed out: {owed:?}");
            assert!(queue.state().keys.is_empty(), "remembered for nothing");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_failed_is_tried_again_within_the_window_and_what_was_delayed_only_where_all_are() {
    let backoff = Backoff { first: Duration::from_secs(30), max: Duration::from_secs(30) };
    let queue = started(Queue::new("test", backoff, None));
    let window = Duration::from_secs(1);
    for round in ["the first", "the second"] {
        queue.add(&key("failed"), Cause::Event);
        pass(1001).await;
        assert_eq!(poll(&queue).as_deref(), Some("failed"), "{round}");
        queue.finish(&key("failed"), Finish::Retry);
        queue.retry_all_spread(window);
    }
    pass(1001).await;
    assert_eq!(poll(&queue).as_deref(), Some("failed"));
    queue.finish(&key("failed"), Finish::Done);
    queue.add_after(&key("delayed"), Duration::from_secs(300), "");
    queue.retry_all_spread(window);
    pass(1001).await;
    assert_eq!(poll(&queue), None);
    queue.add_all_spread(window);
    pass(1001).await;
    assert_eq!(poll(&queue).as_deref(), Some("delayed"));
}

#[tokio::test(start_paused = true)]
async fn a_key_says_what_it_waits_for_and_what_led_to_its_sync() {
    const RESOURCE: &Resource = &PODS;
    let seen = Instant::now();
    let trigger = |name: &str, version| Trigger {
        resource: RESOURCE,
        object: key(name),
        version: ResourceVersion(version),
        seen,
    };
    let backoff = Backoff { first: Duration::from_secs(7), max: Duration::from_secs(30) };
    let queue = started(Queue::new("test", backoff, None));
    assert_eq!((queue.standing(&key("a")), queue.summary()), (Standing::default(), Summary::default()));

    queue.add_for(&key("a"), Cause::Event, trigger("pod", 1));
    queue.add_for(&key("a"), Cause::Event, trigger("pod", 2));
    queue.add_for(&key("b"), Cause::Event, trigger("pod", 3));
    queue.add_for(&key("b"), Cause::Edit, trigger("b", 4));
    pass(2000).await;
    let waited = Some(Duration::from_secs(2));
    assert_eq!(queue.standing(&key("a")), Standing { queued: waited, ..Standing::default() });
    assert_eq!(queue.summary(), Summary { waiting: 2, oldest: waited, ..Summary::default() });
    assert_eq!((poll(&queue).as_deref(), poll(&queue).as_deref()), (Some("b"), Some("a")));
    assert_eq!(queue.trigger(&key("a")), Some(trigger("pod", 1)), "the first event counts");
    assert_eq!(queue.trigger(&key("b")), Some(trigger("b", 4)), "an edit counts more");

    queue.add_for(&key("a"), Cause::Event, trigger("pod", 5));
    queue.finish(&key("a"), Finish::Again);
    queue.finish(&key("b"), Finish::After(Duration::from_secs(3), "the end of a test"));
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    assert_eq!(queue.trigger(&key("a")), Some(trigger("pod", 1)), "it was not worked on yet");
    pass(1000).await;
    let worked = Some(Duration::from_secs(1));
    assert_eq!(queue.standing(&key("a")), Standing { processing: worked, ..Standing::default() });
    let timer = Some((Duration::from_secs(2), "the end of a test"));
    assert_eq!(queue.standing(&key("b")), Standing { timer, ..Standing::default() });

    queue.finish(&key("a"), Finish::Retry);
    let next_try = Some(Duration::from_secs(7));
    assert_eq!(queue.standing(&key("a")), Standing { failures: 1, next_try, ..Standing::default() });
    assert_eq!(queue.summary(), Summary { failing: 1, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn a_change_that_comes_while_its_key_waits_is_what_led_to_the_next_sync() {
    const RESOURCE: &Resource = &PODS;
    let seen = Instant::now();
    let trigger = |version| Trigger { resource: RESOURCE, object: key("pod"), version: ResourceVersion(version), seen };
    let queue = started(Queue::new("test", Backoff::default(), None));
    let (rest, delay) = (Duration::from_millis(100), Duration::from_secs(1));

    queue.add_for(&key("a"), Cause::Event, trigger(1));
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Rest(rest));
    queue.add_for(&key("a"), Cause::Event, trigger(2));
    queue.add_for(&key("a"), Cause::Event, trigger(3));
    pass(101).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    assert_eq!(queue.trigger(&key("a")), Some(trigger(2)), "it came during the rest");

    queue.add_for(&key("a"), Cause::Event, trigger(4));
    queue.finish(&key("a"), Finish::Rest(rest));
    pass(101).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    assert_eq!(queue.trigger(&key("a")), Some(trigger(4)), "it came during the sync");
    queue.finish(&key("a"), Finish::Done);

    queue.add_after_for(&key("a"), delay, "others", trigger(5));
    queue.add_for(&key("a"), Cause::Event, trigger(6));
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    assert_eq!(queue.trigger(&key("a")), Some(trigger(6)), "it did not wait");
    queue.finish(&key("a"), Finish::Done);
    pass(1001).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    assert_eq!(queue.trigger(&key("a")), None, "the sync before has seen the change");
    queue.finish(&key("a"), Finish::Done);

    queue.add_after_for(&key("a"), delay, "others", trigger(7));
    pass(1001).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    let delayed = Trigger { seen: seen + delay, ..trigger(7) };
    assert_eq!(queue.trigger(&key("a")), Some(delayed), "the delay was for this change, and does not count");

    queue.finish(&key("a"), Finish::Rest(rest));
    queue.add_after_for(&key("a"), delay, "others", trigger(8));
    queue.add_for(&key("a"), Cause::Event, trigger(9));
    pass(101).await;
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    assert_eq!(queue.trigger(&key("a")), Some(trigger(9)), "it shortened the wait");
}
