//! Which pods go first when there are too many, and which rule said so.
//!
//! Left out: how many pods go, and which ones may; each controller's plan decides that.

use std::cmp::{Ordering, Reverse};
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use super::{DeletionCost, Phase, Readiness, Restarts};
use crate::api::object::Uid;
use crate::api::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub uid: Uid,
    pub is_assigned: bool,
    pub phase: Phase,
    /// Whether it is ready, and since when.
    pub readiness: Readiness,
    /// Its deletion cost; 0 if the controller knows no costs.
    pub deletion_cost: DeletionCost,
    /// How many active related pods are on its node, itself included; 0 where the controller does not count them.
    pub colocated: usize,
    pub restarts: Restarts,
    pub creation: Option<Time>,
}

/// How times are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// To the second: the younger goes first.
    Exact,
    /// By the magnitude of their age at this instant, so that pods of about the same age go in a random order, and not
    /// always the youngest. The uid is the source of randomness.
    Logarithmic(Timestamp),
}

/// The rule that set a pod to be deleted apart from those that stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    AllGo,
    Unassigned,
    /// Pending before unknown before running.
    Phase,
    NotReady,
    DeletionCost,
    Colocated,
    ReadyTime,
    Restarts,
    Age,
    /// Nothing else tells them apart; the lower uid goes.
    Uid,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllGo => "none is wanted",
            Self::Unassigned => "not scheduled",
            Self::Phase => "earlier phase",
            Self::NotReady => "not ready",
            Self::DeletionCost => "lower deletion cost",
            Self::Colocated => "doubled up on its node",
            Self::ReadyTime => "ready for less time",
            Self::Restarts => "more restarts",
            Self::Age => "newer",
            Self::Uid => "like those that stay, lower uid",
        })
    }
}

/// Chooses `count` pods to delete: their positions in `pods`, first to go first, each with the rule that sets it apart
/// from the first that stays. The order of `pods` does not matter.
///
/// Upstream's comparison is not transitive: two pods that became ready in different seconds of the same magnitude are
/// compared by uid, two of the same second by restarts and age first. Here the order of the latter kind holds within
/// each second, and the seconds are merged by uid, which agrees with upstream wherever that agrees with itself.
///
/// Upstream: `ActivePodsWithRanks` and `ActivePods`, `pkg/controller/controller_utils.go`; `getPodsToDelete`,
/// `pkg/controller/replicaset/replica_set.go`.
pub fn first_to_go(pods: &[Standing], count: usize, scale: Scale) -> Vec<(usize, Rule)> {
    let ranked = rank(pods, scale);
    let Some(stays) = ranked.get(count) else {
        return ranked.iter().map(|ranked| (ranked.position, Rule::AllGo)).collect();
    };
    ranked.iter().take(count).map(|goes| (goes.position, goes.rule_against(stays))).collect()
}

struct Ranked {
    position: usize,
    standing: Standing,
    ready_rank: TimeRank,
    creation_rank: TimeRank,
    /// The uid that this pod is merged by: its class's uids, handed out in the order within the class.
    turn: Uid,
}

fn rank(pods: &[Standing], scale: Scale) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = pods
        .iter()
        .enumerate()
        .map(|(position, standing)| Ranked {
            position,
            standing: *standing,
            ready_rank: TimeRank::of(standing.readiness.since(), scale),
            creation_rank: TimeRank::of(standing.creation, scale),
            turn: standing.uid,
        })
        .collect();
    ranked.sort_by(|a, b| a.compare_class(b).then_with(|| a.compare_within_class(b)));
    for class in ranked.chunk_by_mut(|a, b| a.compare_class(b).is_eq()) {
        let mut uids: Vec<Uid> = class.iter().map(|ranked| ranked.standing.uid).collect();
        uids.sort_unstable();
        for (ranked, uid) in class.iter_mut().zip(uids) {
            ranked.turn = uid;
        }
    }
    ranked.sort_by(|a, b| a.first_rule(b).map_or(Ordering::Equal, |(_, order)| order).then(a.turn.cmp(&b.turn)));
    ranked
}

/// A time's place: none at all first, then the later ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TimeRank {
    Missing,
    Magnitude(i64),
    Later(Reverse<Time>),
}

impl TimeRank {
    fn of(time: Option<Time>, scale: Scale) -> Self {
        match (time, scale) {
            (None, _) => Self::Missing,
            (Some(time), Scale::Exact) => Self::Later(Reverse(time)),
            (Some(time), Scale::Logarithmic(now)) => {
                let nanoseconds = u128::try_from(now.as_nanosecond() - time.timestamp().as_nanosecond()).unwrap_or(0);
                Self::Magnitude(nanoseconds.checked_ilog2().map_or(-1, i64::from))
            }
        }
    }
}

impl Ranked {
    /// The first of rules 1 to 6 that tells two pods apart.
    fn first_rule(&self, other: &Self) -> Option<(Rule, Ordering)> {
        let (a, b) = (&self.standing, &other.standing);
        [
            (Rule::Unassigned, a.is_assigned.cmp(&b.is_assigned)),
            (Rule::Phase, phase_rank(a.phase).cmp(&phase_rank(b.phase))),
            (Rule::NotReady, a.readiness.is_ready().cmp(&b.readiness.is_ready())),
            (Rule::DeletionCost, a.deletion_cost.cmp(&b.deletion_cost)),
            (Rule::Colocated, b.colocated.cmp(&a.colocated)),
            (Rule::ReadyTime, self.ready_rank.cmp(&other.ready_rank)),
        ]
        .into_iter()
        .find(|(_, order)| order.is_ne())
    }

    /// Equal are those that rules 1 to 6 do not tell apart and that became ready at the same instant.
    fn compare_class(&self, other: &Self) -> Ordering {
        let by_instant = || self.standing.readiness.since().cmp(&other.standing.readiness.since());
        self.first_rule(other).map_or_else(by_instant, |(_, order)| order)
    }

    fn compare_within_class(&self, other: &Self) -> Ordering {
        other
            .standing
            .restarts
            .cmp(&self.standing.restarts)
            .then(self.creation_rank.cmp(&other.creation_rank))
            .then(self.standing.uid.cmp(&other.standing.uid))
    }

    fn rule_against(&self, stays: &Self) -> Rule {
        if let Some((rule, _)) = self.first_rule(stays) {
            return rule;
        }
        if self.compare_class(stays).is_ne() {
            Rule::Uid
        } else if self.standing.restarts != stays.standing.restarts {
            Rule::Restarts
        } else if self.creation_rank != stays.creation_rank {
            Rule::Age
        } else {
            Rule::Uid
        }
    }
}

/// Upstream: `podPhaseToOrdinal`, `pkg/controller/controller_utils.go`.
const fn phase_rank(phase: Phase) -> u8 {
    match phase {
        Phase::Pending | Phase::Succeeded | Phase::Failed | Phase::Other => 0,
        Phase::Unknown => 1,
        Phase::Running => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 3600;
    const NOW: i64 = 1000 * HOUR;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn ago(seconds: i64) -> Time {
        Time::from_second(NOW - seconds)
    }

    fn uid(number: u8) -> Uid {
        Uid::parse(&format!("00000000-0000-4000-8000-0000000000{number:02x}"))
    }

    fn running(number: u8) -> Standing {
        Standing {
            uid: uid(number),
            is_assigned: true,
            phase: Phase::Running,
            readiness: Readiness::NotReady,
            deletion_cost: DeletionCost(0),
            colocated: 1,
            restarts: Restarts::default(),
            creation: None,
        }
    }

    fn pending(number: u8) -> Standing {
        Standing { phase: Phase::Pending, ..running(number) }
    }

    fn unassigned(number: u8) -> Standing {
        Standing { is_assigned: false, ..pending(number) }
    }

    fn ready(number: u8, since: impl Into<Option<Time>>) -> Standing {
        let since = since.into();
        Standing { readiness: Readiness::Ready { since }, creation: since, ..running(number) }
    }

    fn restarted(standing: Standing, containers: i32, sidecars: i32) -> Standing {
        Standing { restarts: Restarts { containers, sidecars }, ..standing }
    }

    fn doubled_up(standing: Standing) -> Standing {
        Standing { colocated: 2, ..standing }
    }

    /// Of two pods, whichever comes first in the input, `lesser` goes, by `rule`.
    #[track_caller]
    fn check_in(scale: Scale, rule: Rule, lesser: Standing, greater: Standing) {
        assert_eq!(first_to_go(&[lesser, greater], 1, scale), [(0, rule)]);
        assert_eq!(first_to_go(&[greater, lesser], 1, scale), [(1, rule)]);
    }

    #[track_caller]
    fn check(rule: Rule, lesser: Standing, greater: Standing) {
        check_in(Scale::Logarithmic(now()), rule, lesser, greater);
    }

    /// The inequalities of upstream's `TestSortingActivePodsWithRanks`; uids stand against each expected order.
    #[test]
    fn each_rule_decides_before_those_below() {
        let month = ago(30 * 24 * HOUR);
        check(Rule::Unassigned, unassigned(2), doubled_up(pending(1)));
        check(Rule::Unassigned, doubled_up(unassigned(2)), pending(1));
        let unknown = |number| Standing { phase: Phase::Unknown, ..running(number) };
        check(Rule::Phase, pending(2), doubled_up(unknown(1)));
        check(Rule::Phase, unknown(2), doubled_up(running(1)));
        check(Rule::NotReady, running(2), ready(1, None));
        check(Rule::ReadyTime, ready(2, None), ready(1, ago(0)));
        check(Rule::Colocated, doubled_up(ready(2, ago(0))), ready(1, None));
        check(Rule::ReadyTime, ready(2, ago(0)), ready(1, month));
        check(Rule::Colocated, doubled_up(ready(2, ago(0))), ready(1, month));
        check(Rule::Restarts, restarted(ready(2, ago(0)), 9001, 0), ready(1, ago(0)));
        check(Rule::Restarts, restarted(ready(2, ago(0)), 9001, 9001), restarted(ready(1, ago(0)), 9001, 0));
        check(Rule::Colocated, doubled_up(ready(2, ago(0))), restarted(ready(1, ago(0)), 9001, 0));
        let ready_now_created_then = |number| Standing { creation: Some(month), ..ready(number, ago(0)) };
        check(Rule::Age, ready(2, ago(0)), ready_now_created_then(1));
        check(Rule::Colocated, doubled_up(ready_now_created_then(2)), ready(1, ago(0)));
        let cost = |number, cost| Standing { deletion_cost: DeletionCost(cost), ..ready(number, ago(0)) };
        check(Rule::DeletionCost, doubled_up(cost(2, 10)), cost(1, 100));
        check(Rule::DeletionCost, cost(2, -1), doubled_up(cost(1, 0)));
        check(Rule::ReadyTime, ready(2, ago(2 * HOUR)), ready(1, ago(8 * HOUR)));
    }

    /// The equalities of upstream's `TestSortingActivePodsWithRanks`: there, either may go.
    #[test]
    fn times_of_one_magnitude_are_left_to_the_uid() {
        check(Rule::Uid, ready(1, ago(5 * HOUR)), ready(2, ago(8 * HOUR)));
        check(Rule::Uid, ready(1, ago(8 * HOUR)), ready(2, ago(5 * HOUR)));
        let created = |number, hours| Standing { creation: Some(ago(hours * HOUR)), ..unassigned(number) };
        check(Rule::Uid, created(1, 8), created(2, 5));
        check(Rule::Uid, running(1), running(2));
        // Not even restarts count between pods that became ready at different instants.
        check(Rule::Uid, ready(1, ago(5 * HOUR)), restarted(ready(2, ago(6 * HOUR)), 9001, 0));
    }

    #[test]
    fn a_time_in_the_future_is_younger_than_any() {
        check(Rule::ReadyTime, ready(2, ago(-HOUR)), ready(1, ago(1)));
        check(Rule::Uid, ready(1, ago(-HOUR)), ready(2, ago(-2 * HOUR)));
    }

    /// Upstream's `TestSortingActivePods`, which Jobs use.
    #[test]
    fn the_exact_scale_tells_every_second_apart() {
        let month = ago(30 * 24 * HOUR);
        let created = |standing, creation| Standing { creation, ..standing };
        let order = [
            unassigned(10),
            pending(9),
            Standing { phase: Phase::Unknown, ..running(8) },
            running(7),
            created(restarted(ready(6, None), 3, 0), None),
            created(restarted(ready(5, ago(0)), 3, 0), None),
            created(restarted(ready(4, month), 3, 0), None),
            created(restarted(ready(3, month), 2, 2), Some(ago(0))),
            created(restarted(ready(2, month), 2, 0), Some(ago(0))),
            created(restarted(ready(1, month), 2, 0), Some(month)),
        ];
        for (at, lesser) in order.iter().enumerate() {
            for greater in &order[at + 1..] {
                let chosen = first_to_go(&[*greater, *lesser], 1, Scale::Exact);
                assert_eq!(chosen[0].0, 1, "{lesser:?} goes before {greater:?}");
            }
        }
        check_in(Scale::Exact, Rule::ReadyTime, ready(2, ago(5)), ready(1, ago(6)));
    }

    #[test]
    fn the_rule_is_the_one_against_the_first_that_stays() {
        let pods = [ready(1, ago(2 * HOUR)), running(2), unassigned(3), ready(4, ago(8 * HOUR))];
        let scale = Scale::Logarithmic(now());
        assert_eq!(first_to_go(&pods, 1, scale), [(2, Rule::Unassigned)]);
        assert_eq!(first_to_go(&pods, 2, scale), [(2, Rule::Unassigned), (1, Rule::NotReady)]);
        let three = [(2, Rule::Unassigned), (1, Rule::NotReady), (0, Rule::ReadyTime)];
        assert_eq!(first_to_go(&pods, 3, scale), three);
        assert_eq!(first_to_go(&pods, 4, scale), [2, 1, 0, 3].map(|at| (at, Rule::AllGo)));
        assert_eq!(first_to_go(&pods, 0, scale), []);
    }

    fn any_standing() -> impl Strategy<Value = Standing> {
        let times = prop::option::of(prop::sample::select(vec![0, 1, 2, 3 * HOUR, 4 * HOUR]).prop_map(ago));
        let ready = prop::option::of(times.clone());
        (any::<u8>(), any::<bool>(), 0..2_usize, ready, times, 0..2_i32, 0..2_i32).prop_map(
            |(number, is_assigned, colocated, ready, creation, containers, cost)| Standing {
                uid: uid(number),
                is_assigned,
                phase: Phase::Running,
                readiness: ready.map_or(Readiness::NotReady, |since| Readiness::Ready { since }),
                deletion_cost: DeletionCost(cost),
                colocated,
                restarts: Restarts { containers, sidecars: 0 },
                creation,
            },
        )
    }

    /// Upstream's comparison, rule by rule; `None` where it leaves the order open.
    fn upstream_less(a: &Standing, b: &Standing) -> Option<bool> {
        let scale = Scale::Logarithmic(now());
        let rank = |time| TimeRank::of(time, scale);
        let by_time = |a_time: Option<Time>, b_time: Option<Time>| {
            let order = rank(a_time).cmp(&rank(b_time)).then(a.uid.cmp(&b.uid));
            Some(order.is_lt())
        };
        if a.is_assigned != b.is_assigned {
            return Some(!a.is_assigned);
        }
        if a.readiness.is_ready() != b.readiness.is_ready() {
            return Some(!a.readiness.is_ready());
        }
        if a.deletion_cost != b.deletion_cost {
            return Some(a.deletion_cost < b.deletion_cost);
        }
        if a.colocated != b.colocated {
            return Some(a.colocated > b.colocated);
        }
        if a.readiness.since() != b.readiness.since() {
            return by_time(a.readiness.since(), b.readiness.since());
        }
        if a.restarts != b.restarts {
            return Some(a.restarts > b.restarts);
        }
        if a.creation != b.creation {
            return by_time(a.creation, b.creation);
        }
        None
    }

    proptest! {
        #[test]
        fn the_order_of_the_input_is_irrelevant(
            (pods, shuffled) in prop::collection::vec(any_standing(), 0..12)
                .prop_map(|mut pods| { pods.sort_by_key(|pod| pod.uid); pods.dedup_by_key(|pod| pod.uid); pods })
                .prop_flat_map(|pods| (Just(pods.clone()), Just(pods).prop_shuffle())),
            count in 0..12_usize,
        ) {
            let scale = Scale::Logarithmic(now());
            let chosen = |pods: &[Standing]| -> Vec<(Uid, Rule)> {
                first_to_go(pods, count, scale).into_iter().map(|(at, rule)| (pods[at].uid, rule)).collect()
            };
            prop_assert_eq!(chosen(&pods), chosen(&shuffled));
        }

        #[test]
        fn two_pods_are_compared_as_upstream_does(a in any_standing(), b in any_standing()) {
            prop_assume!(a.uid != b.uid);
            if let Some(a_goes) = upstream_less(&a, &b) {
                let chosen = first_to_go(&[a, b], 1, Scale::Logarithmic(now()));
                prop_assert_eq!(chosen[0].0 == 0, a_goes);
            }
        }
    }
}
