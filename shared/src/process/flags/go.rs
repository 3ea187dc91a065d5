//! Go's form of values: durations as `1m30s`, booleans as `true`, `1` or `f`.
//!
//! Left out: negative durations, which no flag of ours has a meaning for, and Go's number literals (`0x10`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration as Go reads and prints it.
///
/// Upstream: `ParseDuration` and `Duration.String`, Go's time package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(pub Duration);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoValueError {
    /// Not a duration at all.
    #[error("invalid duration {0:?}")]
    Duration(String),
    /// A number without a unit.
    #[error("missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A unit Go does not know, such as `d`.
    #[error("unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit { text: String, unit: String },
    #[error("duration {0:?} is negative")]
    Negative(String),
    /// Neither true nor false.
    #[error("invalid boolean {0:?}: expected true or false")]
    Bool(String),
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

fn unit_nanos(unit: &str) -> Option<u128> {
    match unit {
        "ns" => Some(1),
        // The micro sign, and the Greek letter that looks like it.
        "us" | "\u{b5}s" | "\u{3bc}s" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(NANOS_PER_SECOND),
        "m" => Some(60 * NANOS_PER_SECOND),
        "h" => Some(3600 * NANOS_PER_SECOND),
        _ => None,
    }
}

impl GoDuration {
    /// Parses a period. Zero is refused: an operator would loop without a pause.
    pub fn positive(text: &str) -> Result<Self, String> {
        let period: Self = text.parse().map_err(|error: GoValueError| error.to_string())?;
        if period.0.is_zero() { Err(format!("must be greater than 0, but got {period}")) } else { Ok(period) }
    }
}

impl FromStr for GoDuration {
    type Err = GoValueError;

    fn from_str(text: &str) -> Result<Self, GoValueError> {
        let invalid = || GoValueError::Duration(text.to_owned());
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let mut nanos: u128 = 0;
        let mut rest = unsigned;
        if rest.is_empty() {
            return Err(invalid());
        }
        while !rest.is_empty() && unsigned != "0" {
            let (number, after) = split_while(rest, |char| char.is_ascii_digit() || char == '.');
            let (unit, after) = split_while(after, |char| !char.is_ascii_digit() && char != '.');
            if unit.is_empty() && !number.is_empty() {
                return Err(GoValueError::MissingUnit(text.to_owned()));
            }
            let unknown = || GoValueError::UnknownUnit { text: text.to_owned(), unit: unit.to_owned() };
            if !number.contains(|char: char| char.is_ascii_digit()) {
                return Err(invalid());
            }
            let scale = unit_nanos(unit).ok_or_else(unknown)?;
            nanos = scaled(number, scale).and_then(|part| nanos.checked_add(part)).ok_or_else(invalid)?;
            rest = after;
        }
        // Go's durations are int64 nanoseconds.
        let nanos = i64::try_from(nanos).ok().and_then(|nanos| u64::try_from(nanos).ok()).ok_or_else(invalid)?;
        if negative && nanos > 0 {
            return Err(GoValueError::Negative(text.to_owned()));
        }
        Ok(Self(Duration::from_nanos(nanos)))
    }
}

fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|char| !belongs(char)).unwrap_or(text.len()))
}

/// `number` (digits with at most one dot) times `scale`, without what is below one nanosecond.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    if fraction.contains('.') {
        return None;
    }
    // More digits than a nanosecond of an hour has cannot change the result.
    let digits = &fraction[..fraction.len().min(18)];
    let divisor = 10_u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    let numerator: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    whole.checked_mul(scale)?.checked_add(numerator.checked_mul(scale)? / divisor)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if nanos < NANOS_PER_SECOND {
            let (scale, unit) = match nanos {
                1..1_000 => (1, "ns"),
                1_000..1_000_000 => (1_000, "\u{b5}s"),
                _ => (1_000_000, "ms"),
            };
            return write!(f, "{}{unit}", Fraction(nanos, scale));
        }
        let minutes = nanos / (60 * NANOS_PER_SECOND);
        if minutes >= 60 {
            write!(f, "{}h", minutes / 60)?;
        }
        if minutes > 0 {
            write!(f, "{}m", minutes % 60)?;
        }
        write!(f, "{}s", Fraction(nanos % (60 * NANOS_PER_SECOND), NANOS_PER_SECOND))
    }
}

/// A quotient in decimals, without trailing zeros; the divisor is a power of ten.
struct Fraction(u128, u128);

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / self.1, self.0 % self.1);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = usize::try_from(self.1.ilog10()).map_err(|_| fmt::Error)?;
        let fraction = format!("{rest:0digits$}");
        write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// Reads a boolean as Go's flags do: `1`, `t`, `T`, `true`, `TRUE`, `True`, and the same for false.
///
/// Upstream: `ParseBool`, Go's strconv package.
pub fn parse_bool(text: &str) -> Result<bool, GoValueError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(GoValueError::Bool(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let read = text.parse::<GoDuration>();
        let shown = read.map_or_else(|error| error.to_string(), |duration| duration.to_string());
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn a_period_is_not_zero() {
        assert_eq!(GoDuration::positive("1ns"), Ok(GoDuration(Duration::from_nanos(1))));
        assert_eq!(GoDuration::positive("0h"), Err("must be greater than 0, but got 0s".to_owned()));
        assert_eq!(GoDuration::positive("5"), Err("missing unit in duration \"5\"".to_owned()));
    }

    #[test]
    fn reads_and_prints_durations_as_go_does() {
        for (text, expected) in [
            ("0", "0s"),
            ("-0s", "0s"),
            ("15s", "15s"),
            ("+15s", "15s"),
            ("100ms", "100ms"),
            ("1500ms", "1.5s"),
            ("1m30s", "1m30s"),
            ("90s", "1m30s"),
            ("5m", "5m0s"),
            ("1.5h", "1h30m0s"),
            (".5s", "500ms"),
            ("1.s", "1s"),
            ("1us", "1\u{b5}s"),
            ("1.5\u{b5}s", "1.5\u{b5}s"),
            ("1\u{3bc}s", "1\u{b5}s"),
            ("7ns", "7ns"),
            ("1h0m0.25s", "1h0m0.25s"),
            ("0.100000000000000000000h", "6m0s"),
            ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for (text, expected) in [
            ("", "invalid duration \"\""),
            ("-", "invalid duration \"-\""),
            ("s", "invalid duration \"s\""),
            (".s", "invalid duration \".s\""),
            ("1.2.3s", "invalid duration \"1.2.3s\""),
            ("15", "missing unit in duration \"15\""),
            ("1h5", "missing unit in duration \"1h5\""),
            ("1d", "unknown unit \"d\" in duration \"1d\""),
            ("1 s", "unknown unit \" s\" in duration \"1 s\""),
            ("-15s", "duration \"-15s\" is negative"),
            ("2562047h47m16.854775808s", "invalid duration \"2562047h47m16.854775808s\""),
            (
                "99999999999999999999999999999999999999999s",
                "invalid duration \"99999999999999999999999999999999999999999s\"",
            ),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn reads_booleans_as_go_does() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(parse_bool(text), Ok(true));
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(parse_bool(text), Ok(false));
        }
        for text in ["", "yes", "tRUE", "2"] {
            assert!(parse_bool(text).is_err());
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(nanos in 0..=u64::try_from(i64::MAX).unwrap()) {
            let duration = GoDuration(Duration::from_nanos(nanos));
            prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9.hmsun\u{b5}x ]{0,24}") {
            let _ = text.parse::<GoDuration>();
        }
    }
}
