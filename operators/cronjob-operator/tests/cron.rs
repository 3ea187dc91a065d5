//! The meaning of schedules: robfig/cron's own answers, clock changes and leap days, and a naive evaluator beside ours.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use cronjob_operator::plan::cron::{Schedule, load_zone, parse};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use shared::testing::readers::{Reader, texts};

fn at(text: &str) -> Timestamp {
    let text = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        _ => format!("{text}Z"),
    };
    text.parse().unwrap()
}

/// The times that follow `from`, one after the other; `never` where there is none. All are UTC.
fn check(schedule: &str, from: &str, expected: &[&str]) {
    let parsed = parse(schedule).unwrap_or_else(|error| panic!("{schedule}: {error}"));
    let mut from = at(from);
    for (position, expected) in expected.iter().enumerate() {
        match parsed.next(from) {
            Some(next) if *expected != "never" => {
                assert_eq!(next, at(expected), "{schedule}, time {position} after {from}");
                from = next;
            }
            next => assert_eq!(next.map_or("never".to_owned(), |next| next.to_string()), *expected, "{schedule}"),
        }
    }
}

#[test]
fn a_wall_time_that_the_clocks_skip_is_not_run_that_day() {
    let new_york = |spec: &str| format!("TZ=America/New_York {spec}");
    let march = "2024-03-09";
    check(&new_york("30 2 * * *"), march, &["2024-03-09T07:30", "2024-03-11T06:30", "2024-03-12T06:30"]);
    let times = ["2024-03-11T06:00", "2024-03-11T06:30", "2024-03-12T06:00"];
    check(&new_york("*/30 2 * * *"), "2024-03-09T12:00", &times);
    let half_hour = ["2024-10-06T15:15", "2024-10-07T15:15"];
    check("TZ=Australia/Lord_Howe 15 2 * * *", "2024-10-05", &half_hour);
    check("TZ=Europe/London 30 1 * * *", "2024-03-30", &["2024-03-30T01:30", "2024-04-01T00:30"]);
}

#[test]
fn a_wall_time_that_the_clocks_show_twice_is_run_twice() {
    let times = ["2024-11-03T05:30", "2024-11-03T06:30", "2024-11-04T06:30"];
    check("TZ=America/New_York 30 1 * * *", "2024-11-02T12:00", &times);
    let times = ["2024-10-26T00:30", "2024-10-27T00:30", "2024-10-27T01:30"];
    check("TZ=Europe/London 30 1 * * *", "2024-10-26", &times);
}

#[test]
fn hours_are_real_hours_whatever_the_clocks_do() {
    let spring = ["2024-03-10T06:00", "2024-03-10T07:00", "2024-03-10T08:00"];
    check("TZ=America/New_York 0 * * * *", "2024-03-10T05:30", &spring);
    let autumn = ["2024-11-03T05:00", "2024-11-03T06:00", "2024-11-03T07:00"];
    check("TZ=America/New_York 0 * * * *", "2024-11-03T04:30", &autumn);
    check("TZ=Asia/Kolkata 0 * * * *", "2024-01-01", &["2024-01-01T00:30", "2024-01-01T01:30"]);
    check("TZ=America/New_York 0 0 * * *", "2024-11-02T12:00", &["2024-11-03T04:00", "2024-11-04T05:00"]);
}

#[test]
fn a_midnight_that_the_clocks_skip_does_not_lose_the_next_day() {
    check("TZ=America/Sao_Paulo 0 0 * * *", "2018-11-02T12:00", &["2018-11-03T03:00", "2018-11-05T02:00"]);
    let one_o_clock = ["2018-11-03T04:00", "2018-11-04T03:00", "2018-11-05T03:00"];
    check("TZ=America/Sao_Paulo 0 1 * * *", "2018-11-02T12:00", &one_o_clock);
}

#[test]
fn a_day_that_the_calendar_skips_does_not_stop_the_search() {
    check("TZ=Pacific/Apia 0 0 31 * *", "2011-12-29T12:00", &["2011-12-30T10:00"]);
}

#[test]
fn leap_days_come_every_four_years_and_nothing_further_off_is_found() {
    check("0 0 29 2 *", "2023-03-01", &["2024-02-29", "2028-02-29"]);
    check("0 0 29 2 *", "2096-03-01", &["never"]);
}

#[test]
fn a_month_of_day_and_a_day_of_week_are_either_unless_one_is_a_star() {
    check("0 0 13 * 5", "2024-01-01", &["2024-01-05", "2024-01-12", "2024-01-13", "2024-01-19"]);
    let step_is_no_star = ["2024-01-03", "2024-01-05", "2024-01-07", "2024-01-08"];
    check("0 0 */2 * 1", "2024-01-01T12:00", &step_is_no_star);
    check("0 0 */1 * 1", "2024-01-01T12:00", &["2024-01-08", "2024-01-15"]);
    check("0 0 ? * 1", "2024-01-01T12:00", &["2024-01-08", "2024-01-15"]);
    check("0 0 1-31 * 1", "2024-01-01T12:00", &["2024-01-02", "2024-01-03"]);
    check("0 0 * * SUN/2", "2024-01-01", &["2024-01-02", "2024-01-04"]);
    check("* * * jan-Mar SUN", "2024-01-01", &["2024-01-07", "2024-01-07T00:01"]);
}

#[test]
fn every_counts_from_the_last_time_in_whole_seconds() {
    let start = "2024-01-01T00:00:00.5";
    check("@every 1h30m0.9s", start, &["2024-01-01T01:30", "2024-01-01T03:00"]);
    check("@every 500ms", start, &["2024-01-01T00:00:01", "2024-01-01T00:00:02"]);
    check("@every -5s", start, &["2024-01-01T00:00:01", "2024-01-01T00:00:02"]);
    check("TZ=America/New_York @every 1h", "2024-03-10T06:30", &["2024-03-10T07:30"]);
}

#[test]
fn descriptors_and_odd_spellings_are_read() {
    check("@weekly", "2024-01-01", &["2024-01-07"]);
    check("@yearly", "2024-01-01", &["2025-01-01"]);
    check("@annually", "2024-01-01", &["2025-01-01"]);
    check("@monthly", "2024-01-01", &["2024-02-01"]);
    check("@midnight", "2024-01-01", &["2024-01-02"]);
    check("@hourly", "2024-01-01", &["2024-01-01T01:00"]);
    check("TZ=UTC @daily", "2024-01-01", &["2024-01-02"]);
    check("CRON_TZ=Asia/Tokyo  0 0 * * *", "2024-01-01", &["2024-01-01T15:00"]);
    check("*-5 * * * *", "2024-01-01", &["2024-01-01T00:01"]);
    check("+5 * * * *", "2024-01-01", &["2024-01-01T00:05"]);
    check("1,,2 * * * *", "2024-01-01", &["2024-01-01T00:01", "2024-01-01T00:02", "2024-01-01T01:01"]);
    check("0\t0 1 1\u{a0}*", "2024-01-01", &["2025-01-01"]);
}

#[test]
fn what_never_comes_is_read_and_never_found() {
    check(", 0 * * *", "2024-01-01", &["never"]);
    check("59 23 31 2 *", "2024-01-01", &["never"]);
}

#[test]
fn the_seconds_of_the_start_do_not_move_the_minute() {
    check("* * * * *", "2024-01-01T10:59:59.999", &["2024-01-01T11:00"]);
    check("0 * * * *", "2024-01-01T10:00:00", &["2024-01-01T11:00"]);
    check("0 * * * *", "2024-01-01T09:59:59", &["2024-01-01T10:00"]);
    check("59 23 31 12 *", "2024-12-31T23:59:30", &["2025-12-31T23:59"]);
}

#[test]
fn errors_have_upstreams_words() {
    let five = |first: &str| format!("{first} * * * *");
    for (text, expected) in [
        ("", "empty spec string"),
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("TZ=Bogus 0 0 * * *", "provided bad location Bogus: unknown time zone Bogus"),
        (" TZ=UTC 0 0 * * *", "expected exactly 5 fields, found 6: [TZ=UTC 0 0 * * *]"),
        ("TZ=UTC ", "expected exactly 5 fields, found 0: []"),
        ("@Daily", "unrecognized descriptor: @Daily"),
        ("@every", "unrecognized descriptor: @every"),
        ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
        (&five("60"), "end of range (60) above maximum (59): 60"),
        (&five("60/5"), "beginning of range (60) beyond end of range (59): 60/5"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        (&five("5-1"), "beginning of range (5) beyond end of range (1): 5-1"),
        (&five("1-2-3"), "too many hyphens: 1-2-3"),
        (&five("1/2/3"), "too many slashes: 1/2/3"),
        (&five("*/0"), "step of range should be a positive number: */0"),
        (&five("*/-1"), "negative number (-1) not allowed: -1"),
        (&five("a"), "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
        (&five("-1"), "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
        (
            &five("99999999999999999999"),
            "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of \
             range",
        ),
        ("* * * * sunday", "failed to parse int from sunday: strconv.Atoi: parsing \"sunday\": invalid syntax"),
        ("jan * * * *", "failed to parse int from jan: strconv.Atoi: parsing \"jan\": invalid syntax"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text:?}");
    }
}

#[test]
fn zones_are_found_by_their_exact_name() {
    for name in ["America/New_York", "Europe/Dublin", "US/Eastern", "EST5EDT", "Etc/GMT+1", "UTC", ""] {
        assert!(load_zone(name).is_ok(), "{name}");
    }
    for name in ["america/new_york", "bad timezone", "../etc/passwd", "/etc/localtime"] {
        assert_eq!(load_zone(name).unwrap_err().to_string(), format!("unknown time zone {name}"));
    }
    assert_eq!(load_zone("UTC").unwrap(), TimeZone::UTC);
}

/// One field of a schedule, and which values it lets through.
#[derive(Clone, Debug)]
struct Field {
    text: String,
    values: Vec<i8>,
    is_star: bool,
}

fn field(min: i8, max: i8) -> impl Strategy<Value = Field> {
    let star = (1..=max).prop_map(move |step| Field {
        text: if step == 1 { "*".to_owned() } else { format!("*/{step}") },
        values: (min..=max).step_by(usize::try_from(step).unwrap()).collect(),
        is_star: step == 1,
    });
    let range = (min..=max, min..=max, 1..=max).prop_map(|(a, b, step)| {
        let (start, end) = (a.min(b), a.max(b));
        let values = (start..=end).step_by(usize::try_from(step).unwrap()).collect();
        Field { text: format!("{start}-{end}/{step}"), values, is_star: false }
    });
    let list = prop::collection::vec(min..=max, 1..4).prop_map(|values| {
        let text: Vec<String> = values.iter().map(ToString::to_string).collect();
        Field { text: text.join(","), values, is_star: false }
    });
    prop_oneof![star, range, list]
}

/// How far the naive evaluator looks: more than a month, so that months and leap days matter.
const SEARCHED_MINUTES: i64 = 60 * 24 * 40;

/// Looks at every minute, one after the other.
fn naive_next(fields: &[Field; 5], after: Timestamp) -> Option<Timestamp> {
    let [minute, hour, day_of_month, month, day_of_week] = fields;
    let first = after.as_second().div_euclid(60) + 1;
    (first..first + SEARCHED_MINUTES).map(|minute| Timestamp::from_second(minute * 60).unwrap()).find(|candidate| {
        let wall = candidate.to_zoned(TimeZone::UTC).datetime();
        let by_month = day_of_month.values.contains(&wall.day());
        let by_week = day_of_week.values.contains(&wall.weekday().to_sunday_zero_offset());
        let is_and = day_of_month.is_star || day_of_week.is_star;
        minute.values.contains(&wall.minute())
            && hour.values.contains(&wall.hour())
            && month.values.contains(&wall.month())
            && if is_and { by_month && by_week } else { by_month || by_week }
    })
}

fn text(fields: &[Field; 5]) -> String {
    fields.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn schedule(fields: &[Field; 5]) -> Schedule {
    parse(&text(fields)).unwrap()
}

fn fields() -> impl Strategy<Value = [Field; 5]> {
    (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)).prop_map(<[Field; 5]>::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn in_utc_the_next_time_is_the_first_minute_that_matches(
        fields in fields(),
        start in 1_600_000_000_i64..2_000_000_000,
        nanosecond in 0_i32..1_000_000_000,
    ) {
        let after = Timestamp::new(start, nanosecond).unwrap();
        let horizon = (start.div_euclid(60) + 1 + SEARCHED_MINUTES) * 60;
        let found = schedule(&fields).next(after).filter(|found| found.as_second() < horizon);
        let expected = naive_next(&fields, after);
        prop_assert_eq!(found, expected, "{}", text(&fields));
    }

    #[test]
    fn in_any_zone_time_goes_forward_and_the_clock_shows_what_was_asked_for(
        fields in fields(),
        start in 0_i64..4_000_000_000,
        zone in prop::sample::select(vec![
            "America/New_York", "Europe/London", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata",
            "Africa/Casablanca", "Antarctica/Troll", "America/St_Johns", "Asia/Gaza", "Pacific/Kwajalein",
        ]),
    ) {
        let schedule = parse(&format!("TZ={zone} {}", text(&fields))).unwrap();
        let zone = load_zone(zone).unwrap();
        let mut last = Timestamp::from_second(start).unwrap();
        for _ in 0..5 {
            let Some(next) = schedule.next(last) else { break };
            prop_assert!(next > last);
            let wall = next.to_zoned(zone.clone()).datetime();
            // Where the clock jumps within an hour (St. John's did at 00:01), the library counts on in the hour it left.
            let begun = next - SignedDuration::from_mins(wall.minute().into());
            let begun = begun.to_zoned(zone.clone()).datetime();
            let [minute, hour, ..] = &fields;
            let is_hour = hour.values.contains(&wall.hour()) || hour.values.contains(&begun.hour());
            prop_assert!(minute.values.contains(&wall.minute()) && is_hour, "{}", wall);
            last = next;
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-*/,?0-9a-z@ TZ=]{0,24}") {
        if let Ok(schedule) = parse(&text) {
            let _ = schedule.next(at("2024-01-01"));
        }
    }
}

#[test]
fn no_schedule_panics_whatever_it_is() {
    let read = |bytes: &[u8]| {
        let Ok(schedule) = parse(&String::from_utf8_lossy(bytes)) else { return };
        assert!(schedule.next(at("2026-01-01")).is_none_or(|next| next > at("2026-01-01")));
    };
    let seeds = || texts(&["*/5 0-23,1 ? FEB-dec sun", "TZ=Europe/Berlin 30 2 29 2 *", "@every 1h2m3s", "@monthly"]);
    Reader { name: "cron", read, seeds }.withstands(5_000);
}
