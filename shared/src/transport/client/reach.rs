//! Whether the server can be reached, as the requests of a process tell, and word of its return: what has failed while it
//! was away waits no longer than that. However short a gap was, the server may be another one after it.
//!
//! Left out: answers that refuse. A webhook, a quota or an aggregated API may be at fault, and the server is there.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::transport::clock::part_of;

/// A failure that is followed by an answer sooner than this was of one connection or request, not of the server.
const AWAY_MIN: Duration = Duration::from_secs(1);

/// Over how long everything that waits for the server's return should begin again, as [`soon_after`] does.
pub const RETURN_SPREAD: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Reach {
    /// When the first of the requests failed to which no answer came since.
    failing_since: watch::Sender<Option<Instant>>,
    gaps: watch::Sender<u64>,
    returns: watch::Sender<u64>,
}

impl Reach {
    /// Notes that no answer came, or that one has ended before its time.
    pub(super) fn fails(&self) {
        self.failing_since.send_if_modified(|since| {
            let is_first = since.is_none();
            since.get_or_insert_with(Instant::now);
            is_first
        });
    }

    pub(super) fn answers(&self) {
        if self.failing_since.borrow().is_none() {
            return;
        }
        let since = self.failing_since.send_replace(None);
        self.gaps.send_modify(|gaps| *gaps += 1);
        if since.is_some_and(|since| since.elapsed() >= AWAY_MIN) {
            self.returns();
        }
    }

    /// Wakes the tasks that wait for the server's return.
    pub(super) fn returns(&self) {
        self.returns.send_modify(|returns| *returns += 1);
    }

    pub(super) fn failing_since(&self) -> watch::Receiver<Option<Instant>> {
        self.failing_since.subscribe()
    }

    pub(super) fn came_back(&self) -> watch::Receiver<u64> {
        self.returns.subscribe()
    }

    /// Changes with the first answer after any failure.
    pub(super) fn gaps(&self) -> watch::Receiver<u64> {
        self.gaps.subscribe()
    }
}

/// Waits until the server is back, and a little longer, so that not everything that waits for it begins at once.
pub async fn soon_after(came_back: &mut watch::Receiver<u64>) {
    // The sender lives as long as any client of the process.
    if came_back.changed().await.is_ok() {
        sleep(part_of(RETURN_SPREAD)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_answer_after_a_while_of_failures_is_a_return() {
        let reach = Reach::default();
        let (returns, gaps) = (reach.came_back(), reach.gaps());
        reach.answers();
        assert_eq!(*gaps.borrow(), 0);
        reach.fails();
        tokio::time::advance(AWAY_MIN / 2).await;
        reach.answers();
        assert_eq!(*returns.borrow(), 0, "one connection was lost, and the server was there");
        assert_eq!(*gaps.borrow(), 1, "whatever server it is now");
        reach.fails();
        tokio::time::advance(AWAY_MIN).await;
        reach.fails();
        reach.answers();
        assert_eq!((*returns.borrow(), *gaps.borrow()), (1, 2));
        reach.answers();
        assert_eq!((*returns.borrow(), *gaps.borrow()), (1, 2), "only the first one");
    }
}
