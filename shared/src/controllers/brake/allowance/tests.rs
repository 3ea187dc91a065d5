use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { share: 0.04, least: 20 };
/// Those of nodes.
const NODES: Limits = Limits { share: 0.55, least: 10 };

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A group of this size, whose units ask at these seconds.
struct Asks {
    allowance: Allowance<usize>,
    began: Instant,
    exist: usize,
}

impl Asks {
    fn new(limits: Limits, exist: usize) -> Self {
        let began = tokio::time::Instant::now().into_std();
        Self { allowance: Allowance::new(limits, began), began, exist }
    }

    fn ask(&mut self, unit: usize, at: u64) -> Answer {
        self.allowance.ask(&unit, || self.exist, self.began + seconds(at))
    }

    fn goes(&mut self, unit: usize, at: u64) -> bool {
        self.ask(unit, at) == Answer::Go
    }

    /// How many of these go if each asks once.
    fn count(&mut self, units: std::ops::Range<usize>, at: u64) -> usize {
        units.filter(|unit| self.goes(*unit, at)).count()
    }

    /// The second of its turn; none if it may go.
    fn turn(&mut self, unit: usize, at: u64) -> Option<u64> {
        match self.ask(unit, at) {
            Answer::Go => None,
            Answer::Wait { turn, .. } => Some(at + turn.as_secs()),
        }
    }
}

/// Nodes that go so many milliseconds apart, and ask after a quarantine of 40 s, one after the other; when each may lose
/// its pods, as seconds after it asked for the first time.
fn waits(size: usize, lost: usize, apart: u64) -> Vec<u64> {
    let Asks { mut allowance, began, .. } = Asks::new(NODES, size);
    let mut due: BTreeSet<(Instant, bool, usize)> = BTreeSet::new();
    for node in 0..lost {
        let goes = began + Duration::from_millis(apart) * u32::try_from(node).unwrap();
        due.extend([(goes, false, node), (goes + seconds(40), true, node)]);
    }
    let (mut exist, mut waits, mut asked) = (size, Vec::new(), BTreeMap::new());
    while let Some((now, asks, node)) = due.pop_first() {
        if !asks {
            exist -= 1;
            allowance.gone(&node, now);
            continue;
        }
        let first = *asked.entry(node).or_insert(now);
        match allowance.ask(&node, || exist, now) {
            Answer::Go => waits.push((now - first).as_secs()),
            Answer::Wait { again, .. } => drop(due.insert((now + again, true, node))),
        }
    }
    waits
}

#[test]
fn one_of_two_zones_goes_at_once_and_everything_is_held_however_fast_nodes_go() {
    for size in [20, 30, 40, 100, 200, 1000, 2000] {
        for apart in [10, 50, 250] {
            let zone = waits(size, size / 2, apart);
            assert_eq!((zone.len(), zone.iter().max()), (size / 2, Some(&0)), "{size} nodes, {apart} ms apart");

            let all = waits(size, size, apart);
            let at_once = all.iter().filter(|wait| **wait == 0).count();
            // What crawls while nodes still go.
            let crawl = 0.03 * f64::from(u32::try_from(apart).unwrap()) / 60_000.0;
            let most = number(size) * (0.56 + crawl * number(size)) + 1.0;
            assert!(number(at_once) <= most, "{at_once} of {size} nodes, {apart} ms apart");
            let last = all.iter().max().unwrap();
            assert!((4 * 60..=20 * 60).contains(last), "the last of {size} nodes, {apart} ms apart, waits {last} s");
        }
    }
}

#[test]
fn a_single_failure_after_a_large_loss_does_not_wait() {
    for (size, lost) in [(100, 55), (100, 50), (40, 22)] {
        let mut asks = Asks::new(NODES, size);
        assert_eq!(asks.count(0..lost, 0), lost);
        (0..lost).for_each(|node| asks.allowance.gone(&node, asks.began + seconds(60)));
        asks.exist = size - lost;
        for at in [60, 300, 700, 1200] {
            assert!(asks.goes(size + usize::try_from(at).unwrap(), at), "{lost} of {size}, after {at} s");
        }
    }
}

#[test]
fn members_that_go_while_nobody_asks_are_forgotten() {
    let mut asks = Asks::new(NODES, 100);
    for minute in 0..60 {
        asks.allowance.gone(&usize::try_from(minute).unwrap(), asks.began + seconds(60 * minute));
    }
    assert_eq!(asks.allowance.gone.len(), 10, "those of ten minutes");
}

#[test]
fn members_are_forgotten_although_a_deletion_that_nobody_asks_for_any_more_waits() {
    let mut asks = Asks::new(NODES, 20);
    assert_eq!(asks.count(0..12, 0), 11);
    for minute in 0..60 {
        asks.allowance.gone(&usize::try_from(100 + minute).unwrap(), asks.began + seconds(60 * minute));
    }
    assert_eq!((asks.allowance.gone.len(), asks.allowance.waiting()), (10, 0));
}

/// Dropping them reads all, which would be quadratic in the members that go together.
#[test]
fn outdated_members_are_dropped_at_most_every_ten_seconds() {
    let mut asks = Asks::new(NODES, 100);
    for (member, at, left) in [(0, 0, 1), (1, 595, 2), (2, 601, 3), (3, 606, 3)] {
        asks.allowance.gone(&member, asks.began + seconds(at));
        assert_eq!(asks.allowance.gone.len(), left, "after {at} s");
    }
}

#[test]
fn a_grant_lasts_as_long_as_it_is_asked_for() {
    let mut asks = Asks::new(NODES, 100);
    for minute in 0..30 {
        assert_eq!(asks.count(0..55, minute * 60), 55, "each deletion fails and is tried again");
    }
    assert_eq!(asks.count(55..100, 29 * 60), 45, "they were counted once");
}

#[test]
fn a_share_goes_at_once_and_the_others_crawl() {
    let mut asks = Asks::new(LIMITS, 1000);
    assert_eq!(asks.count(0..1000, 0), 40);
    assert_eq!(asks.count(40..1000, 60), 30);
    assert_eq!(Asks::new(LIMITS, 15).count(0..15, 0), 15, "a few are never too many");
    let mut small = Asks::new(LIMITS, 30);
    assert_eq!((small.count(0..30, 0), small.count(20..30, 60)), (20, 1), "one each minute at least");
}

#[test]
fn what_may_go_may_go_again_and_what_waits_is_told_the_same() {
    let mut asks = Asks::new(LIMITS, 100);
    assert_eq!(asks.count(0..20, 0), 20);
    assert!(asks.goes(3, 1));
    let Answer::Wait { again, turn, is_new: true, report: true } = asks.ask(20, 1) else { panic!("it has to wait") };
    assert_eq!((again, turn), (seconds(11), seconds(19)), "it asks in between");
    let expected = Answer::Wait { again: seconds(11), turn: seconds(18), is_new: false, report: false };
    assert_eq!(asks.ask(20, 2), expected);
    let later = asks.ask(21, 2);
    assert!(matches!(later, Answer::Wait { is_new: true, report: false, .. }), "{later:?}");
    assert_eq!(asks.turn(21, 3), Some(40));
    assert!(asks.goes(20, 20));
    let reported = asks.ask(22, 601);
    assert!(matches!(reported, Answer::Go | Answer::Wait { report: true, .. }), "{reported:?}");
}

#[test]
fn each_that_waits_is_counted_once_however_long_it_waits() {
    let mut asks = Asks::new(LIMITS, 100);
    let (mut left, mut new): (Vec<usize>, usize) = ((0..100).collect(), 0);
    for minute in 0..30 {
        left.retain(|unit| {
            let answer = asks.ask(*unit, minute * 60 + 1);
            new += usize::from(matches!(answer, Answer::Wait { is_new: true, .. }));
            answer != Answer::Go
        });
    }
    assert_eq!((left.len(), new), (0, 80));
}

#[test]
fn those_that_come_later_wait_for_those_before_them_until_these_need_not_go() {
    let mut asks = Asks::new(LIMITS, 100);
    asks.count(0..30, 0);
    assert_eq!(asks.turn(40, 30), Some(220), "its turn is after those before it");
    assert!(asks.goes(20, 30), "whose turn it was");
    (20..30).for_each(|unit| asks.allowance.withdraw(&unit));
    assert!(asks.goes(40, 40), "none is before it");
    assert_eq!(asks.turn(41, 40), Some(60));
}

#[test]
fn a_population_that_grows_or_shrinks_lets_no_more_go_and_holds_nothing_for_longer() {
    let mut asks = Asks::new(LIMITS, 1000);
    assert_eq!(asks.count(0..1000, 0), 40);
    asks.exist = 2000;
    assert_eq!(asks.count(40..1000, 30), 15, "those that wait were replaced");
    let mut asks = Asks::new(NODES, 10);
    assert_eq!(asks.count(0..10, 0), 10);
    asks.exist = 100;
    assert!(asks.turn(10, 30).is_some_and(|turn| turn <= 60), "all of a few are no more than what may go of many");
}

proptest! {
    /// No ten minutes see more deletions than the share and the slowed ones.
    #[test]
    fn no_ten_minutes_see_more_than_the_share_and_the_crawl(
        population in 1_usize..3000,
        moments in prop::collection::vec((0_u64..60, 0_usize..500), 1..600),
    ) {
        let mut asks = Asks::new(LIMITS, population);
        let (mut now, mut went) = (0, Vec::new());
        for (pause, unit) in moments {
            now += pause;
            let was_granted = asks.allowance.granted.contains_key(&unit);
            if asks.goes(unit, now) && !was_granted {
                went.push(now);
            }
        }
        let crawl = 10.0 * (number(population) * CRAWL).max(1.0) + 1.0;
        let at_once = (number(population) * LIMITS.share).max(number(LIMITS.least));
        for from in &went {
            let within = went.iter().filter(|at| (*from..from + 600).contains(*at)).count();
            prop_assert!(number(within) <= at_once + crawl, "{within} within ten minutes");
        }
    }
}
