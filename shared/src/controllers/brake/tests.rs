use proptest::prelude::*;

use super::*;
use crate::testing::NOW;

const LIMITS: Limits = Limits { share: 0.04, least: 20 };

fn pods() -> Text {
    Text::new("pods")
}

fn second(second: i64) -> Timestamp {
    after(NOW, SignedDuration::from_secs(second))
}

/// How many of so many go within each of these minutes, if all are asked for at once and then when they are told to.
fn gone(population: usize, minutes: usize) -> Vec<usize> {
    let mut allowance = Allowance::default();
    let mut due: BTreeMap<Timestamp, Vec<usize>> = BTreeMap::from([(NOW, (0..population).collect())]);
    let mut gone = vec![0; minutes];
    while let Some((now, units)) = due.pop_first() {
        let minute = usize::try_from(NOW.duration_until(now).as_secs() / 60).unwrap();
        if minute >= minutes {
            break;
        }
        for unit in units {
            match allowance.ask(&pods(), &unit, LIMITS, |_| population, now) {
                Answer::Go => gone[minute] += 1,
                Answer::Wait { until, .. } => due.entry(until).or_default().push(unit),
            }
        }
    }
    gone
}

#[test]
fn a_share_goes_at_once_and_the_others_crawl() {
    let first = gone(1000, 3);
    assert!((40..=50).contains(&first[0]), "{first:?}");
    assert!(first[1..].iter().all(|gone| (9..=10).contains(gone)), "{first:?}");
    assert_eq!(gone(15, 1), [15], "a few are never too many");
    assert!(gone(100, 1)[0] <= 22);
}

#[test]
fn all_go_in_the_end() {
    assert_eq!(gone(300, 200).iter().sum::<usize>(), 300);
}

#[test]
fn what_may_go_may_go_again_and_what_waits_is_told_the_same() {
    let mut allowance = Allowance::default();
    let mut ask = |unit: usize, at: i64| allowance.ask(&pods(), &unit, LIMITS, |_| 100, second(at));
    assert!((0..20).all(|unit| ask(unit, 0) == Answer::Go));
    assert_eq!(ask(3, 1), Answer::Go);
    let Answer::Wait { until, held, is_new: true, tell: true } = ask(20, 1) else { panic!("it has to wait") };
    assert_eq!(
        held.to_string(),
        format!("wait until {}: 20 of 100 pods go within 10m0s, and no user's change explains it", held.until)
    );
    assert_eq!(ask(20, 2), Answer::Wait { until, held, is_new: false, tell: false });
    let Answer::Wait { until: next, is_new: true, tell: false, .. } = ask(21, 2) else { panic!("it has to wait") };
    assert!(next > until);
    let at = |until: Timestamp| NOW.duration_until(until).as_secs();
    assert_eq!(ask(20, at(until)), Answer::Go);
    assert!((22..42).all(|unit| ask(unit, at(until) + 600) == Answer::Go), "after ten minutes nothing counts any more");
    assert!(matches!(ask(42, at(until) + 601), Answer::Wait { tell: true, .. }));
}

#[test]
fn a_clock_that_is_set_back_holds_nothing_for_longer() {
    let mut allowance = Allowance::default();
    let mut ask = |unit: usize, at: i64| allowance.ask(&pods(), &unit, LIMITS, |_| 100, second(at));
    assert!((0..20).all(|unit| ask(unit, 3600) == Answer::Go));
    assert!((20..40).all(|unit| ask(unit, 0) == Answer::Go));
}

#[test]
fn a_share_is_a_number_from_0_to_1() {
    assert_eq!((share("0"), share("0.5"), share("1")), (Ok(0.0), Ok(0.5), Ok(1.0)));
    for wrong in ["-0.1", "1.1", "NaN", "5%", ""] {
        assert!(share(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    /// Whoever asks when, no ten minutes see more than the share and what crawls.
    #[test]
    fn no_ten_minutes_see_more_than_the_share_and_the_crawl(
        population in 1_usize..3000,
        asks in prop::collection::vec((0_i64..60, 0_usize..500), 1..600),
    ) {
        let mut allowance = Allowance::default();
        let (mut now, mut went, mut gone) = (0, Vec::new(), std::collections::BTreeSet::new());
        for (pause, unit) in asks {
            now += pause;
            let answer = allowance.ask(&pods(), &unit, LIMITS, |_| population, second(now));
            if answer == Answer::Go && gone.insert((unit, now / 600)) {
                went.push(now);
            }
        }
        let crawl = 10.0 * (number(population) / 100.0).max(1.0) + 2.0;
        for from in &went {
            let within = went.iter().filter(|at| (*from..from + 600).contains(*at)).count();
            prop_assert!(number(within) <= 2.0 * (LIMITS.at_once(population) + crawl), "{within} within ten minutes");
        }
    }
}
