use jiff::Timestamp;
use jiff::tz::Offset;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{NOW, ago};

fn read(value: Value) -> serde_json::Result<Data> {
    serde_json::from_value(value)
}

#[test]
fn a_value_is_decoded_and_shown_to_nobody() {
    for value in ["", "a", "ab", "abc", "1234567890123456"] {
        let data = read(STANDARD.encode(value).into()).unwrap();
        assert_eq!(data.bytes(), value.as_bytes());
        assert_eq!(data, Data::from(value.as_bytes()));
        assert_eq!(format!("{data:?}"), "Data(SecretBox<[u8]>([REDACTED]))");
    }
    assert_ne!(read("YQ==".into()).unwrap(), Data::from(&b"b"[..]));
    for wrong in [json!("hunter2!"), json!("aHVudGVyMg"), json!("YQ==YQ==")] {
        let error = read(wrong.clone()).unwrap_err().to_string();
        assert_eq!(error, "a value is no base64", "{wrong}");
    }
    assert!(read(Value::Null).is_err() && read(json!(5)).is_err());
}

fn expiration(text: impl AsRef<[u8]>) -> Expiration {
    serde_json::from_value(STANDARD.encode(text).into()).unwrap()
}

/// As Go's `time.Parse(time.RFC3339, …)` reads it; `""` for a text that it does not read.
#[track_caller]
fn reads(text: &str, expected: &str) {
    let expected = if expected.is_empty() { Expiration::Unreadable } else { Expiration::At(expected.parse().unwrap()) };
    assert_eq!(expiration(text), expected, "{text:?}");
}

#[test]
fn a_text_is_a_time_where_it_is_one_for_the_apiserver() {
    reads("2026-02-03T04:05:06Z", "2026-02-03T04:05:06Z");
    reads("2026-02-03T04:05:06+02:00", "2026-02-03T02:05:06Z");
    reads("2026-02-03T04:05:06-09:30", "2026-02-03T13:35:06Z");
    reads("2026-02-03T04:05:06.5Z", "2026-02-03T04:05:06.5Z");
    reads("2026-02-03T04:05:06,1234567899-00:00", "2026-02-03T04:05:06.123456789Z");
    reads("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z");
    // Go is not strict there.
    reads("2026-02-03T4:05:06Z", "2026-02-03T04:05:06Z");
    reads("2026-02-03T04:05:06+24:60", "2026-02-02T03:05:06Z");
    for wrong in [
        "2026-02-03T04:05:06",
        "2026-02-03 04:05:06Z",
        "2026-02-03t04:05:06Z",
        "2026-02-03T04:05:06z",
        "2026-02-03T04:05:06Z\n",
        " 2026-02-03T04:05:06Z",
        "2026-02-03T04:05Z",
        "2026-02-03T04:05:06.Z",
        "2026-02-03T04:05:06+0200",
        "2026-02-03T04:05:06+02",
        "2026-02-03T04:05:06+25:00",
        "2026-02-03T04:05:06[UTC]",
        "2026-02-03T24:00:00Z",
        "2026-02-03T04:05:60Z",
        "2026-02-3T04:05:06Z",
        "2026-02-30T04:05:06Z",
        "2026-13-01T04:05:06Z",
        "2025-02-29T00:00:00Z",
        "+2026-02-03T04:05:06Z",
        "26-02-03T04:05:06Z",
        "1770091506",
        "2026-02-03",
    ] {
        reads(wrong, "");
    }
    assert_eq!(expiration([0xff, 0xfe]), Expiration::Unreadable);
}

#[test]
fn a_token_is_over_at_its_time_and_without_one_never() {
    let check = |text: &str, left: Option<u64>, is_over: bool| {
        let expiration = expiration(text);
        let left = left.map(std::time::Duration::from_secs);
        assert_eq!((expiration.left(NOW), expiration.is_over(NOW)), (left, is_over), "{text}");
    };
    check("", None, false);
    check("soon", None, true);
    check(&ago(-5).to_string(), Some(5), false);
    check(&ago(0).to_string(), None, true);
    check(&ago(5).to_string(), None, true);
}

#[test]
fn the_last_times_of_go_are_the_last_there_are() {
    assert_eq!(expiration("9999-12-31T23:59:59Z"), Expiration::At(Timestamp::MAX));
    reads("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z");
}

proptest! {
    #[test]
    fn a_time_is_read_in_any_zone(
        second in -62_135_596_800_i64..253_402_207_200,
        nanosecond in 0_i32..1_000_000_000,
        minutes in -1_439_i32..1_440,
    ) {
        let time = Timestamp::new(second, nanosecond).unwrap();
        let local = Offset::from_seconds(minutes * 60).unwrap().to_datetime(time);
        prop_assume!((0..=9999).contains(&local.year()));
        let (sign, zone) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
        let text = format!("{local}{sign}{:02}:{:02}", zone / 60, zone % 60);
        prop_assert_eq!(expiration(&text), Expiration::At(time), "{}", text);
    }

    #[test]
    fn any_bytes_are_a_time_or_none(bytes in prop::collection::vec(any::<u8>(), 1..40), text in "[-+0-9TZ:.,]{1,40}") {
        for any in [bytes, text.into_bytes()] {
            prop_assert_ne!(expiration(&any), Expiration::Never);
        }
    }
}
