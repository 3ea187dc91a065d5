//! How long a leader's Lease lasts and when it is renewed: with work, and while there is none. Pure, but for a look at the
//! queues.
//!
//! A renewal costs the apiserver as much as any other write, and most operators of a cluster have nothing to do most of the
//! time. The price: after a crash at rest it takes longer until another leader sees something new. What is due at a known
//! time finds the usual times.

use std::time::Duration;

use futures::FutureExt;
use futures::future::select_all;
use jiff::Timestamp;
use tokio::time::Instant;

use super::Election;
use crate::runtime::queue::Queue;

/// The longest time until a renewed Lease shows that etcd was restored.
const RENEW_PERIOD_MAX: Duration = Duration::from_secs(5);
/// The same at rest. It is less than [`QUIET_TO_COME`], so that the usual times are back before something is due.
const RENEW_PERIOD_MAX_AT_REST: Duration = Duration::from_secs(20);

/// How much longer the Lease of a leader at rest lasts.
const LONGER: u32 = 3;
/// But no longer than this, unless the flags say so.
const LONGEST: Duration = Duration::from_secs(45);

/// A leader is at rest that had nothing to do for so long,
const QUIET: Duration = Duration::from_secs(15);
/// and will have nothing to do for so long, unless something happens.
const QUIET_TO_COME: Duration = Duration::from_mins(1);

/// The times of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// How long the Lease lasts without a renewal.
    pub(super) lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub(super) renew_deadline: Duration,
    /// How long to wait between two tries.
    retry_period: Duration,
    /// How long after a renewal the next one is due at the latest.
    pub(super) renew_period: Duration,
}

impl Times {
    /// Those of the flags.
    pub(super) fn at_work(election: &Election) -> Self {
        let Election { lease_duration, renew_deadline, retry_period, .. } = *election;
        let renew_period = (renew_deadline / 2).min(RENEW_PERIOD_MAX).max(retry_period);
        Self { lease_duration, renew_deadline, retry_period, renew_period }
    }

    /// Those of a leader that has nothing to do. It gives up as long before its Lease is anybody's as at work.
    pub(super) fn at_rest(election: &Election) -> Self {
        let Election { lease_duration: at_work, renew_deadline, retry_period, .. } = *election;
        let lease_duration = (at_work * LONGER).min(LONGEST).max(at_work);
        let renew_deadline = renew_deadline + lease_duration.saturating_sub(at_work);
        let renew_period = (renew_deadline / 2).min(RENEW_PERIOD_MAX_AT_REST).max(retry_period);
        Self { lease_duration, renew_deadline, retry_period, renew_period }
    }

    /// How long the Lease lasts to other candidates, who count the seconds in it, which are whole.
    pub(super) fn seconds(self) -> u64 {
        self.lease_duration.as_secs()
    }

    /// When the renewal after that of `since` begins: once the wall clock, which shows `time` now, has a multiple of the
    /// renew period. So all leaders of a cluster renew together, which costs the apiserver far less than one by one.
    pub(super) fn next_renewal(self, since: Instant, now: Instant, time: Timestamp) -> Instant {
        let latest = since + self.renew_period;
        let Some(left) = latest.checked_duration_since(now) else { return latest };
        let shown = Duration::try_from(time.duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default() + left;
        let beyond = shown.as_nanos().checked_rem(self.renew_period.as_nanos()).unwrap_or_default();
        latest - Duration::from_nanos(u64::try_from(beyond).unwrap_or_default())
    }

    /// How long after a renewal was due at the latest it may be tried. Upstream's leader begins to try a retry period
    /// after the last renewal and gives up at the renew deadline; this one gives up at the same moment.
    pub(super) fn renew_limit(self) -> Duration {
        (self.retry_period + self.renew_deadline).min(self.lease_duration).saturating_sub(self.renew_period)
    }

    /// How long to wait for one answer, so that there is time for another try.
    pub(super) fn answer_limit(self) -> Duration {
        (self.renew_limit() / 2).max(Duration::from_secs(1))
    }
}

/// Whether there was nothing to do for a while, and will be nothing for a while unless something happens.
pub(super) fn is_at_rest(queues: &[Queue]) -> bool {
    let now = Instant::now();
    let is_quiet = |queue: &Queue| {
        queue.quiet().is_some_and(|quiet| {
            quiet.since + QUIET <= now && quiet.until.is_none_or(|until| until >= now + QUIET_TO_COME)
        })
    };
    !queues.is_empty() && queues.iter().all(is_quiet)
}

/// Ends once there is something to do, or will be soon.
pub(super) async fn work_comes(queues: &[Queue]) {
    loop {
        // Before the look: what is added after it ends the wait.
        let stirs: Vec<_> = queues.iter().map(|queue| queue.stirs().boxed()).collect();
        if !is_at_rest(queues) {
            return;
        }
        select_all(stirs).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::object::Key;

    /// Milliseconds of the Lease, of the renew period and limit, and of an answer.
    fn millis(of: fn(&Election) -> Times, [lease, deadline, retry]: [u64; 3]) -> [u128; 4] {
        let seconds = Duration::from_secs;
        let times = of(&Election {
            lease: Key::new("kube-system", "test-operator"),
            identity: "a".to_owned(),
            lease_duration: seconds(lease),
            renew_deadline: seconds(deadline),
            retry_period: seconds(retry),
        });
        [times.lease_duration, times.renew_period, times.renew_limit(), times.answer_limit()]
            .map(|time| time.as_millis())
    }

    #[test]
    fn a_leader_renews_twice_in_its_deadline_but_no_more_often_than_it_retries_and_no_less_than_a_restore_demands() {
        let check = |flags, expected| assert_eq!(millis(Times::at_work, flags), expected, "{flags:?}");
        check([15, 10, 2], [15_000, 5000, 7000, 3500]);
        check([60, 50, 2], [60_000, 5000, 47_000, 23_500]);
        check([137, 107, 26], [137_000, 26_000, 107_000, 53_500]);
        check([15, 10, 8], [15_000, 8000, 7000, 3500]);
        check([4, 3, 1], [4000, 1500, 2500, 1250]);
        check([3, 2, 1], [3000, 1000, 2000, 1000]);
    }

    #[test]
    fn at_rest_a_lease_lasts_longer_but_none_that_is_long_already() {
        let check = |flags, expected: [u128; 3]| assert_eq!(millis(Times::at_rest, flags)[..3], expected, "{flags:?}");
        check([15, 10, 2], [45_000, 20_000, 22_000]);
        check([60, 50, 2], [60_000, 20_000, 32_000]);
        check([137, 107, 26], [137_000, 26_000, 107_000]);
        check([4, 3, 1], [12_000, 5500, 6500]);
        check([3, 2, 1], [9000, 4000, 5000]);
    }
}
