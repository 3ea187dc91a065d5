//! When a leader renews its Lease, and for how long it tries. Pure.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::Election;

/// The longest time until a renewed Lease shows that etcd was restored.
const RENEW_PERIOD_MAX: Duration = Duration::from_secs(5);

impl Election {
    /// How long after a renewal the next one is due at the latest.
    pub(super) fn renew_period(&self) -> Duration {
        (self.renew_deadline / 2).min(RENEW_PERIOD_MAX).max(self.retry_period)
    }

    /// When the renewal after that of `since` begins: once the wall clock, which shows `time` now, has a multiple of the
    /// renew period. All leaders of a cluster renew together, which costs the apiserver far less than one after another.
    pub(super) fn next_renewal(&self, since: Instant, now: Instant, time: Timestamp) -> Instant {
        let period = self.renew_period();
        let latest = since + period;
        let Some(left) = latest.checked_duration_since(now) else { return latest };
        let shown = Duration::try_from(time.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default() + left;
        let beyond = shown.as_nanos().checked_rem(period.as_nanos()).unwrap_or_default();
        latest - Duration::from_nanos(u64::try_from(beyond).unwrap_or_default())
    }

    /// How long after a renewal was due at the latest it may be tried: for the renew deadline, but not beyond the end of
    /// the Lease, from which on this process may not write.
    pub(super) fn renew_limit(&self) -> Duration {
        self.renew_deadline.min(self.lease_duration.saturating_sub(self.renew_period()))
    }

    /// How long to wait for one answer, so that there is time for another try.
    pub(super) fn answer_limit(&self) -> Duration {
        (self.renew_limit() / 2).max(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::object::Key;

    #[test]
    fn a_leader_renews_twice_in_its_deadline_but_no_more_often_than_it_retries_and_no_less_than_a_restore_demands() {
        let seconds = Duration::from_secs;
        // Seconds of the flags; milliseconds of the renew period, of the renew limit, and of an answer.
        let check = |[lease, deadline, retry]: [u64; 3], expected: [u128; 3]| {
            let election = Election {
                lease: Key::new("kube-system", "test-operator"),
                identity: "a".to_owned(),
                lease_duration: seconds(lease),
                renew_deadline: seconds(deadline),
                retry_period: seconds(retry),
            };
            let times = [election.renew_period(), election.renew_limit(), election.answer_limit()];
            assert_eq!(times.map(|time| time.as_millis()), expected, "{lease} {deadline} {retry}");
        };
        check([15, 10, 2], [5000, 10_000, 5000]);
        check([60, 50, 2], [5000, 50_000, 25_000]);
        check([137, 107, 26], [26_000, 107_000, 53_500]);
        check([15, 10, 8], [8000, 7000, 3500]);
        check([4, 3, 1], [1500, 2500, 1250]);
        check([3, 2, 1], [1000, 2000, 1000]);
    }
}
