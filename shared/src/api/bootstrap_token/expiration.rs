//! The expiration of a bootstrap token, read as upstream reads it.
//!
//! The apiserver refuses a token whose expiration it cannot read, so a text must be a time here exactly where it is one
//! there. Left out: jiff's own reading, which takes more texts than Go's, such as one without a `T`.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::Deserialize;

use super::Data;

/// Until when a bootstrap token is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Data")]
pub enum Expiration {
    /// It names no time, and is good for ever.
    #[default]
    Never,
    At(Timestamp),
    /// It names something that is no time, and is not good.
    Unreadable,
}

/// Upstream: `GetExpiration`, staging/src/k8s.io/cluster-bootstrap/util/secrets/secrets.go.
impl From<Data> for Expiration {
    fn from(text: Data) -> Self {
        match text.bytes() {
            [] => Self::Never,
            text => parse(text).map_or(Self::Unreadable, Self::At),
        }
    }
}

impl Expiration {
    /// How long it is until then; none where it is over, or there is no such time.
    pub fn left(self, now: Timestamp) -> Option<Duration> {
        match self {
            Self::At(end) => Duration::try_from(now.duration_until(end)).ok().filter(|left| !left.is_zero()),
            Self::Never | Self::Unreadable => None,
        }
    }

    /// Whether the token is not good any more.
    pub fn is_over(self, now: Timestamp) -> bool {
        self != Self::Never && self.left(now).is_none()
    }
}

/// Upstream: `Parse` of `RFC3339`, Go's src/time/format.go.
fn parse(text: &[u8]) -> Option<Timestamp> {
    let mut rest = Rest(text);
    let year: i16 = rest.number(4)?;
    let month: i8 = rest.skip(b'-')?.number(2)?;
    let day: i8 = rest.skip(b'-')?.number(2)?;
    rest.skip(b'T')?;
    // Go takes an hour of one digit, too.
    let hour: i8 = rest.number(2).or_else(|| rest.number(1))?;
    let minute: i8 = rest.skip(b':')?.number(2)?;
    let second: i8 = rest.skip(b':')?.number(2)?;
    let (nanosecond, offset) = (rest.fraction(), rest.offset()?);
    if !rest.0.is_empty() {
        return None;
    }
    let time = DateTime::new(year, month, day, hour, minute, second, nanosecond).ok()?;
    let instant = Offset::from_seconds(offset).ok()?.to_timestamp(time);
    // The last hours of the year 9999 are later than jiff's last time.
    Some(instant.unwrap_or(Timestamp::MAX))
}

/// The part of a text that is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn skip(&mut self, byte: u8) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(self)
    }

    /// A number of exactly so many digits; takes nothing where there is none.
    fn number<T: TryFrom<i32>>(&mut self, digits: usize) -> Option<T> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        let is_number = number.iter().all(u8::is_ascii_digit);
        let value = number.iter().fold(0, |value, digit| value * 10 + i32::from(digit.wrapping_sub(b'0')));
        let value = T::try_from(value).ok().filter(|_| is_number)?;
        self.0 = rest;
        Some(value)
    }

    /// Nanoseconds after a point or a comma; digits beyond the ninth say nothing.
    fn fraction(&mut self) -> i32 {
        let [b'.' | b',', rest @ ..] = self.0 else { return 0 };
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = rest.split_at(count);
        if !digits.is_empty() {
            self.0 = rest;
        }
        let digit = |at: usize| digits.get(at).map_or(0, |digit| i32::from(digit - b'0'));
        (0..9).fold(0, |value, at| value * 10 + digit(at))
    }

    /// The seconds that local time is ahead of UTC. Go takes 24 hours and 60 minutes, too.
    fn offset(&mut self) -> Option<i32> {
        if self.skip(b'Z').is_some() {
            return Some(0);
        }
        let sign = if self.skip(b'-').is_some() { -1 } else { self.skip(b'+').map(|_| 1)? };
        let hours: i32 = self.number(2)?;
        let minutes: i32 = self.skip(b':')?.number(2)?;
        (hours <= 24 && minutes <= 60).then_some(sign * (hours * 60 + minutes) * 60)
    }
}
