//! The queue's promises, with tokio's paused clock.

use super::*;
use futures::FutureExt;
use proptest::prelude::*;

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

fn queue() -> Queue {
    Queue::new("test", Backoff { first: Duration::from_millis(100), max: Duration::from_secs(1) }, None)
}

/// What [`Queue::next`] gives at this instant.
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

/// Counts what `workqueue_adds_total` counts.
#[derive(Clone, Default)]
struct Adds(Arc<std::sync::atomic::AtomicUsize>);

impl Observer for Adds {
    fn added(&self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    fn depth(&self, _: usize) {}
    fn dequeued(&self, _: Duration) {}
    fn worked(&self, _: Duration) {}
    fn retried(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_already_is_not_counted_as_added_again() {
    let adds = Adds::default();
    let queue = Queue::new("test", Backoff::default(), Some(Box::new(adds.clone())));
    for cause in [Cause::Event, Cause::Event, Cause::Edit, Cause::Edit] {
        queue.add(&key("a"), cause);
    }
    assert_eq!((adds.0.load(std::sync::atomic::Ordering::Relaxed), queue.len()), (1, 1));
    assert_eq!(poll(&queue).as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn of_two_delays_the_earlier_counts_and_an_add_cancels_none() {
    let queue = queue();
    queue.add_after(&key("a"), Duration::from_secs(5));
    queue.add_after(&key("a"), Duration::from_secs(2));
    queue.add_after(&key("a"), Duration::from_secs(9));
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

/// Who waits for keys when there is not even a timer knows of none that is set later, unless it is told.
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
    queue.add_after(&key("a"), Duration::MAX);
    queue.add(&key("b"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("b"));
    queue.finish(&key("b"), Finish::After(Duration::MAX));
    pass(1_000_000).await;
    assert_eq!(poll(&queue), None);
    queue.add(&key("b"), Cause::Event);
    assert_eq!(poll(&queue).as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn an_unrelated_event_neither_shortens_a_backoff_nor_uses_a_retry() {
    let queue = queue();
    queue.add(&key("a"), Cause::Event);
    for (failures, wait) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (6, 1_000)] {
        assert_eq!(poll(&queue).as_deref(), Some("a"));
        queue.finish(&key("a"), Finish::Retry);
        assert_eq!(queue.failures(&key("a")), failures);
        queue.add(&key("a"), Cause::Event);
        pass(wait - 1).await;
        queue.add(&key("a"), Cause::Event);
        assert_eq!(poll(&queue), None, "after failure {failures}");
        pass(1).await;
    }
    assert_eq!(poll(&queue).as_deref(), Some("a"));
    queue.finish(&key("a"), Finish::Done);
    assert_eq!(queue.failures(&key("a")), 0);
    pass(60_000).await;
    assert_eq!(poll(&queue), None);
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
    queue.add_after(&key("timer"), Duration::from_secs(1));
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
                    2 => { queue.add_after(&key, Duration::from_millis(50)); owed.insert(key); }
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
    let queue = Queue::new("test", Backoff { first: Duration::from_secs(30), max: Duration::from_secs(30) }, None);
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
    queue.add_after(&key("delayed"), Duration::from_secs(300));
    queue.retry_all_spread(window);
    pass(1001).await;
    assert_eq!(poll(&queue), None);
    queue.add_all_spread(window);
    pass(1001).await;
    assert_eq!(poll(&queue).as_deref(), Some("delayed"));
}
