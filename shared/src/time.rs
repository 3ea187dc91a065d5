//! `metav1.Time`: an instant of whole seconds, in 8 bytes.
//!
//! Left out: `MicroTime` (only Leases and Events carry it; they use [`jiff::Timestamp`] directly) and the clock itself
//! (see [`crate::clock`]): everything here is a value.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds since 1970-01-01T00:00:00Z, as the API stores every `metav1.Time`.
///
/// Source: `Time`, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// From seconds since the epoch.
    pub const fn from_second(second: i64) -> Self {
        Self(second)
    }

    /// The instant, cut to whole seconds as the apiserver does.
    pub fn of(instant: Timestamp) -> Self {
        Self(instant.as_second())
    }

    /// Seconds since the epoch.
    pub const fn second(self) -> i64 {
        self.0
    }

    /// As a [`Timestamp`]; an instant outside of jiff's range becomes the end of that range.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_second(self.0).unwrap_or(if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }

    /// How long from `now` until `self` + `seconds`; `None` when that is not in the future.
    pub fn remaining(self, seconds: i64, now: Timestamp) -> Option<Duration> {
        let due = Self(self.0.saturating_add(seconds)).timestamp();
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

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
                text.parse::<Timestamp>().map(Time::of).map_err(E::custom)
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

    #[test]
    fn remaining_is_none_once_due() {
        let start = Time::from_second(100);
        assert_eq!(start.remaining(10, Timestamp::from_second(104).unwrap()), Some(Duration::from_secs(6)));
        assert_eq!(start.remaining(10, Timestamp::from_second(110).unwrap()), None);
        assert!(start.remaining(i64::MAX, Timestamp::from_second(110).unwrap()).is_some());
    }
}
