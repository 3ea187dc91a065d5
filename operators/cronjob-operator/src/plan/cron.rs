//! Standard cron, as robfig/cron v3 reads and computes it: the library that upstream uses.
//!
//! An own evaluator, because these rules are upstream's behavior: clock changes, steps in the day rule, `@every`.
//! Upstream does not use the library's optional field of seconds.

mod parser;
mod spec;
mod zone;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use parser::{InvalidCron, parse};
pub use zone::{UnknownTimeZone, load_zone};

#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// By the calendar of a time zone.
    Spec(SpecSchedule),
    /// At an interval of whole seconds.
    Every { seconds: i64 },
}

/// A calendar schedule: each field as a set of bits.
///
/// Upstream: `SpecSchedule`, `spec.go` of robfig/cron.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecSchedule {
    minute: u64,
    hour: u64,
    day_of_month: u64,
    month: u64,
    day_of_week: u64,
    zone: TimeZone,
}

/// The bit of a field written as `*` or `?`.
const STAR: u64 = 1 << 63;

impl Schedule {
    /// The first instant after this one; for a calendar, within five years.
    ///
    /// Upstream: `Schedule.Next`, `spec.go` and `constantdelay.go`.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let second = whole_second(after);
        match self {
            Self::Spec(spec) => spec.next(second),
            Self::Every { seconds } => second.checked_add(*seconds),
        }
        .and_then(|second| Timestamp::from_second(second).ok())
    }
}

/// The second an instant is in.
fn whole_second(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}
