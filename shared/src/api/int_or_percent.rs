//! `IntOrString` where it stands for a count or a share of a total: `maxSurge`, `maxUnavailable`, `minAvailable`.
//!
//! Left out: ports, which have names instead of percentages.

use std::fmt;

use serde::{Deserialize, Deserializer};

/// A count, or a percentage of a total that the user of the value knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    Int(i32),
    /// A percentage, without its sign.
    Percent(i32),
    /// A text that is no percentage. It is kept so that one odd object can still be read.
    Invalid(Box<str>),
}

/// To which side a percentage of a total is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    Up,
    /// Towards the next lower whole number.
    Down,
}

/// The text is not a number followed by `%`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value for IntOrString: {0:?} is not a percentage")]
pub struct InvalidPercent(Box<str>);

impl IntOrPercent {
    /// From the text of an `IntOrString`.
    ///
    /// Upstream: `getIntOrPercentValueSafely`, `staging/src/k8s.io/apimachinery/pkg/util/intstr/intstr.go`.
    pub fn parse(text: &str) -> Self {
        let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
        percent.map_or_else(|| Self::Invalid(text.into()), Self::Percent)
    }

    /// The count itself, or the share of `total`.
    ///
    /// Upstream: `GetScaledValueFromIntOrPercent`, `intstr.go`.
    pub fn of(&self, total: i32, rounding: Rounding) -> Result<i32, InvalidPercent> {
        match self {
            Self::Int(count) => Ok(*count),
            Self::Percent(percent) => {
                let product = i64::from(*percent) * i64::from(total);
                let share = match rounding {
                    Rounding::Down => product.div_euclid(100),
                    Rounding::Up => -(-product).div_euclid(100),
                };
                Ok(i32::try_from(share).unwrap_or(if share < 0 { i32::MIN } else { i32::MAX }))
            }
            Self::Invalid(text) => Err(InvalidPercent(text.clone())),
        }
    }
}

/// `null` is 0.
///
/// Upstream: `IntOrString.UnmarshalJSON`, `intstr.go`.
impl<'de> Deserialize<'de> for IntOrPercent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = IntOrPercent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a percentage")
            }
            fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<IntOrPercent, E> {
                i32::try_from(count).map(IntOrPercent::Int).map_err(E::custom)
            }
            fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<IntOrPercent, E> {
                i32::try_from(count).map(IntOrPercent::Int).map_err(E::custom)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<IntOrPercent, E> {
                Ok(IntOrPercent::parse(text))
            }
            fn visit_unit<E: serde::de::Error>(self) -> Result<IntOrPercent, E> {
                Ok(IntOrPercent::Int(0))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, total: i32, up: i32, down: i32) {
        let value: IntOrPercent = serde_json::from_str(json).unwrap();
        assert_eq!(value.of(total, Rounding::Up), Ok(up), "{json} of {total}, rounded up");
        assert_eq!(value.of(total, Rounding::Down), Ok(down), "{json} of {total}, rounded down");
    }

    /// Upstream: `TestGetScaledValueFromIntOrPercent`.
    #[test]
    fn a_percentage_is_a_share_of_the_total() {
        check("123", 0, 123, 123);
        check("-3", 10, -3, -3);
        check(r#""90%""#, 100, 90, 90);
        check(r#""90%""#, 95, 86, 85);
        check(r#""25%""#, 10, 3, 2);
        check(r#""39%""#, 10, 4, 3);
        check(r#""0%""#, 10, 0, 0);
        check(r#""100%""#, i32::MAX, i32::MAX, i32::MAX);
        check(r#""2147483647%""#, i32::MAX, i32::MAX, i32::MAX);
        check(r#""-5%""#, 10, 0, -1);
    }

    /// Upstream: `IntOrString.UnmarshalJSON`, which gave these results for these rows.
    #[test]
    fn json_is_read_as_upstream_reads_it() {
        for (json, expected) in [
            ("null", Some(0)),
            ("3", Some(3)),
            ("-1", Some(-1)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            ("1.0", None),
            ("1e3", None),
            ("true", None),
            ("{}", None),
            ("[]", None),
        ] {
            let read = serde_json::from_str::<IntOrPercent>(json).ok();
            assert_eq!(read, expected.map(IntOrPercent::Int), "{json}");
        }
        assert_eq!(serde_json::from_str::<Option<IntOrPercent>>("null").unwrap(), None);
    }

    #[test]
    fn a_text_that_is_no_percentage_is_read_and_refused_when_used() {
        for json in [r#""oops""#, r#""12""#, r#""%""#, r#""1.5%""#, r#""""#] {
            let value: IntOrPercent = serde_json::from_str(json).unwrap();
            assert!(value.of(10, Rounding::Up).is_err(), "{json}");
        }
    }
}
