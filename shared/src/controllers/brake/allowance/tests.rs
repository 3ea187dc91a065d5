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

/// How many of a population are deleted in each minute, if all ask at once and then when they are told to.
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
                Answer::Wait { again, .. } => due.entry(again).or_default().push(unit),
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

/// Its turn in seconds; none if it may be deleted now.
fn turn(answer: &Answer) -> Option<i64> {
    match answer {
        Answer::Go => None,
        Answer::Wait { held, .. } => Some(NOW.duration_until(held.until.timestamp()).as_secs()),
    }
}

#[test]
fn what_may_go_may_go_again_and_what_waits_is_told_the_same() {
    let mut allowance = Allowance::default();
    let mut ask = |unit: usize, at: i64| allowance.ask(&pods(), &unit, LIMITS, |_| 100, second(at));
    assert!((0..20).all(|unit| ask(unit, 0) == Answer::Go));
    assert_eq!(ask(3, 1), Answer::Go);
    let first = ask(20, 1);
    let Answer::Wait { again, held, is_new: true, report: true } = first.clone() else { panic!("it has to wait") };
    assert_eq!(again, second(1 + 11), "it asks in between");
    assert_eq!(
        held.to_string(),
        format!("wait until {}: 20 of 100 pods affected within 10m0s, and no user's change explains it", held.until)
    );
    let Answer::Wait { held: same, is_new: false, report: false, .. } = ask(20, 2) else { panic!("it has to wait") };
    assert_eq!(same, held);
    let later = ask(21, 2);
    assert!(matches!(later, Answer::Wait { is_new: true, report: false, .. }), "{later:?}");
    assert_eq!((turn(&first), turn(&later)), (Some(60), Some(120)));
    assert_eq!(ask(20, 61), Answer::Go);
    let reported = ask(22, 601);
    assert!(matches!(reported, Answer::Go | Answer::Wait { report: true, .. }), "{reported:?}");
}

#[test]
fn nothing_lapses_at_once_after_ten_minutes() {
    let mut allowance = Allowance::default();
    let mut ask = |unit: usize, at: i64| allowance.ask(&pods(), &unit, LIMITS, |_| 100, second(at));
    assert!((0..20).all(|unit| ask(unit, 0) == Answer::Go));
    let gone =
        |ask: &mut dyn FnMut(usize, i64) -> Answer, at| (0..100).filter(|unit| ask(*unit, at) == Answer::Go).count();
    assert_eq!(gone(&mut ask, 599), 29, "those of the beginning, and one in each minute");
    assert_eq!(gone(&mut ask, 611), 10, "those of the beginning count as others do from now on");
}

#[test]
fn each_that_waits_is_counted_once_however_long_it_waits() {
    let mut allowance = Allowance::default();
    let (mut left, mut new): (Vec<usize>, usize) = ((0..100).collect(), 0);
    for minute in 0..90 {
        left.retain(|unit| {
            let answer = allowance.ask(&pods(), unit, LIMITS, |_| 100, second(minute * 60 + 1));
            new += usize::from(matches!(answer, Answer::Wait { is_new: true, .. }));
            answer != Answer::Go
        });
    }
    assert_eq!((left.len(), new), (0, 80));
}

#[test]
fn those_that_come_later_wait_for_those_before_them_until_these_need_not_go() {
    let mut allowance = Allowance::default();
    for unit in 0..30 {
        allowance.ask(&pods(), &unit, LIMITS, |_| 100, second(0));
    }
    let ask = |allowance: &mut Allowance<usize>, unit, at| allowance.ask(&pods(), &unit, LIMITS, |_| 100, second(at));
    assert_eq!(turn(&ask(&mut allowance, 40, 90)), Some(660), "its turn is after those before it");
    assert_eq!(ask(&mut allowance, 20, 90), Answer::Go, "whose turn it was");
    (20..30).for_each(|unit| allowance.withdraw(&unit));
    assert_eq!(ask(&mut allowance, 40, 120), Answer::Go, "none is before it");
    assert_eq!(turn(&ask(&mut allowance, 41, 120)), Some(180));
}

#[test]
fn a_clock_that_is_set_back_holds_nothing_for_longer() {
    let mut allowance = Allowance::default();
    let mut ask = |unit: usize, at: i64| allowance.ask(&pods(), &unit, LIMITS, |_| 100, second(at));
    assert!((0..20).all(|unit| ask(unit, 3600) == Answer::Go));
    assert_eq!(turn(&ask(20, 3600)), Some(3660));
    assert_eq!(turn(&ask(20, 10)), Some(70));
    assert_eq!(ask(20, 70), Answer::Go);
}

#[test]
fn a_population_that_grows_because_those_that_wait_were_replaced_lets_no_more_go() {
    let mut allowance = Allowance::default();
    let mut ask = |unit: usize, population: usize, at: i64| {
        allowance.ask(&pods(), &unit, LIMITS, |_| population, second(at)) == Answer::Go
    };
    assert_eq!((0..1000).filter(|unit| ask(*unit, 1000, 0)).count(), 40);
    assert_eq!((40..1000).filter(|unit| ask(*unit, 2000, 30)).count(), 5);
}

#[test]
fn a_share_is_a_number_from_0_to_1() {
    assert_eq!((share("0"), share("0.5"), share("1")), (Ok(0.0), Ok(0.5), Ok(1.0)));
    for wrong in ["-0.1", "1.1", "NaN", "5%", ""] {
        assert!(share(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    /// No ten minutes see more deletions than the share and the slowed ones.
    #[test]
    fn no_ten_minutes_see_more_than_the_share_and_the_crawl(
        population in 1_usize..3000,
        asks in prop::collection::vec((0_i64..60, 0_usize..500), 1..600),
    ) {
        let mut allowance = Allowance::default();
        let (mut now, mut went) = (0, Vec::new());
        for (pause, unit) in asks {
            now += pause;
            let before = allowance.granted.get(&unit).copied();
            let answer = allowance.ask(&pods(), &unit, LIMITS, |_| population, second(now));
            if answer == Answer::Go && allowance.granted.get(&unit).copied() != before {
                went.push(now);
            }
        }
        let crawl = 10.0 * (number(population) / 100.0).max(1.0) + 1.0;
        for from in &went {
            let within = went.iter().filter(|at| (*from..from + 600).contains(*at)).count();
            prop_assert!(number(within) <= LIMITS.at_once(population) + crawl, "{within} within ten minutes");
        }
    }
}
