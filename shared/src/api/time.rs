//! `metav1.Time`: an instant of whole seconds, in 8 bytes, and in no more where there may be none.
//!
//! Left out: `MicroTime` (only Leases and Events carry it; they use [`jiff::Timestamp`] directly) and the clock itself
//! (see [`crate::transport::clock`]): everything here is a value.

use std::fmt;
use std::num::NonZeroI64;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::fmt::temporal::Pieces;
use serde::de::Unexpected;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds, as the API stores every `metav1.Time`; counted from so long ago that none is 0.
///
/// Upstream: `Time`, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroI64);

/// Longer before the epoch than the years that have four digits.
const BEGINNING: i64 = -1 << 40;
const FIRST: NonZeroI64 = NonZeroI64::new(1).unwrap();

impl Time {
    /// From seconds since 1970-01-01T00:00:00Z.
    pub const fn from_second(second: i64) -> Self {
        match NonZeroI64::new(second.saturating_sub(BEGINNING)) {
            Some(since) if since.is_positive() => Self(since),
            _ => Self(FIRST),
        }
    }

    /// The instant, cut to whole seconds as the apiserver does.
    pub fn of(instant: Timestamp) -> Self {
        Self::from_second(instant.as_second())
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    pub const fn second(self) -> i64 {
        self.0.get() + BEGINNING
    }

    /// As a [`Timestamp`]; an instant outside of jiff's range becomes the end of that range.
    pub fn timestamp(self) -> Timestamp {
        let second = self.second();
        Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }

    /// How long from `now` until `self` + `seconds`; `None` when that is not in the future.
    pub fn remaining(self, seconds: i64, now: Timestamp) -> Option<Duration> {
        let due = Self::from_second(self.second().saturating_add(seconds)).timestamp();
        Duration::try_from(now.duration_until(due)).ok().filter(|left| !left.is_zero())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.timestamp(), f)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a text is a time of the last hours that the API has and jiff has not: they read as the last ones that both have.
fn is_last_day(text: &str) -> bool {
    Pieces::parse(text).is_ok_and(|pieces| pieces.date() >= Date::constant(9999, 12, 30) && pieces.time().is_some())
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
                let read = text
                    .parse::<Timestamp>()
                    .or_else(|error| if is_last_day(text) { Ok(Timestamp::MAX) } else { Err(error) });
                read.map(Time::of).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_as_the_api_does() {
        let time: Time = serde_json::from_str(r#""2026-01-02T03:04:05Z""#).unwrap();
        assert_eq!(serde_json::to_string(&time).unwrap(), r#""2026-01-02T03:04:05Z""#);
    }

    /// Upstream: `Time.UnmarshalJSON`, which gave these results for these rows, but for fractions of a second.
    #[test]
    fn json_is_read_as_upstream_reads_it_and_in_more_forms() {
        let read = |json: &str| {
            let time = serde_json::from_str::<Option<Time>>(json).ok()?;
            Some(time.map_or_else(|| "none".to_owned(), |time| time.to_string()))
        };
        for (json, expected) in [
            ("null", "none"),
            (r#""2026-01-01T00:00:00.5Z""#, "2026-01-01T00:00:00Z"),
            (r#""2026-01-01T00:00:00,5Z""#, "2026-01-01T00:00:00Z"),
            (r#""2026-01-01T00:00:00+01:00""#, "2025-12-31T23:00:00Z"),
            (r#""2026-01-01T00:00:00-00:00""#, "2026-01-01T00:00:00Z"),
            (r#""2026-01-01T00:00:00+24:00""#, "2025-12-31T00:00:00Z"),
        ] {
            assert_eq!(read(json).as_deref(), Some(expected), "{json}");
        }
        let no_time = ["1", "true", "{}", "[]", r#""""#, r#""1""#, r#"" 2026-01-01T00:00:00Z""#];
        let no_instant = [r#""2026-01-01T00:00:00""#, r#""2026-01-01T24:00:00Z""#, r#""2026-02-30T00:00:00Z""#];
        for wrong in no_time.iter().chain(&no_instant) {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        for refused_upstream in ["01t00:00:00z", "01 00:00:00Z", "01T00:00Z", "01T00:00:00+0100", "01T00:00:00Z[UTC]"] {
            assert!(read(&format!(r#""2026-01-{refused_upstream}""#)).is_some(), "{refused_upstream}");
        }
        assert_eq!(read(r#""2026-01-01T0:00:00Z""#), None, "upstream reads an hour of one digit");
    }

    #[test]
    fn the_last_time_of_the_api_reads_as_the_last_there_is() {
        let read = |text: &str| serde_json::from_value::<Time>(text.into());
        assert_eq!(read("9999-12-31T23:59:59Z").unwrap(), Time::of(Timestamp::MAX));
        assert_eq!(read("9999-12-31T23:59:59+14:00").unwrap(), Time::of(Timestamp::MAX));
        assert_eq!(read("9999-12-30T21:00:00Z").unwrap().to_string(), "9999-12-30T21:00:00Z");
        assert_eq!(read("0001-01-01T00:00:00Z").unwrap().to_string(), "0001-01-01T00:00:00Z");
        for wrong in ["9999-12-31", "9999-12-32T00:00:00Z", "2026-13-01T00:00:00Z", "soon", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn none_takes_no_more_room_than_one_and_the_order_is_that_of_time() {
        assert_eq!(size_of::<Option<Time>>(), 8);
        let seconds = [i64::MIN, -377_705_023_201, -1, 0, 1, 253_402_207_200, i64::MAX];
        assert!(seconds.windows(2).all(|two| Time::from_second(two[0]) < Time::from_second(two[1])));
        for second in &seconds[1..6] {
            assert_eq!(Time::from_second(*second).second(), *second);
        }
    }

    #[test]
    fn remaining_is_none_once_due() {
        let start = Time::from_second(100);
        assert_eq!(start.remaining(10, Timestamp::from_second(104).unwrap()), Some(Duration::from_secs(6)));
        assert_eq!(start.remaining(10, Timestamp::from_second(110).unwrap()), None);
        assert!(start.remaining(i64::MAX, Timestamp::from_second(110).unwrap()).is_some());
    }
}
