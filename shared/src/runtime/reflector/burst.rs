//! Whether a watch has so many events that a connection of its own is worth it. To set one up costs about as much as HTTP/2
//! costs the apiserver for a hundred events.
//!
//! Left out: when such a connection is given up, which is when nothing comes any more.

use std::time::Duration;

use tokio::time::Instant;

const MANY: u32 = 200;
const WITHIN: Duration = Duration::from_secs(10);

/// The events of the last while.
pub(super) struct Burst {
    began: Instant,
    events: u32,
}

impl Burst {
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, events: 0 }
    }

    /// Counts an event, and gives whether many have come since this stretch of time began.
    pub(super) fn grows(&mut self, now: Instant) -> bool {
        if now.duration_since(self.began) >= WITHIN {
            *self = Self::new(now);
        }
        self.events += 1;
        self.events >= MANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_events_are_many_in_a_short_time() {
        let mut now = Instant::now();
        let mut burst = Burst::new(now);
        for _ in 1..MANY {
            assert!(!burst.grows(now));
        }
        assert!(burst.grows(now));
        now += WITHIN;
        assert!(!burst.grows(now), "what was long ago does not count");
        for _ in 0..10 * MANY {
            now += WITHIN / MANY + Duration::from_millis(1);
            assert!(!burst.grows(now), "it goes on, but slowly");
        }
    }
}
