//! Reads a schedule: five fields or a descriptor, after an optional `TZ=`.
//!
//! Errors have upstream's words, because events repeat them.
//!
//! Upstream: `parser.go` of robfig/cron, and `ParseStandard` as `pkg/controller/cronjob` calls it.

use std::num::IntErrorKind;

use jiff::tz::TimeZone;
use shared::process::flags::{GoDuration, GoValueError};

use super::zone::{UnknownTimeZone, load_zone};
use super::{STAR, Schedule, SpecSchedule};

/// Why a schedule is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCron {
    #[error("empty spec string")]
    Empty,
    /// A zone with nothing after it, at which upstream's library panics.
    #[error("invalid schedule format: runtime error: slice bounds out of range [:-1]")]
    ZoneOnly,
    #[error("provided bad location {name}: {error}")]
    BadLocation { name: String, error: UnknownTimeZone },
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    FieldCount(Vec<String>),
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    #[error("failed to parse duration {descriptor}: time: {error}")]
    Duration { descriptor: String, error: GoValueError },
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    #[error("too many slashes: {0}")]
    Slashes(String),
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {0:?}: {1}")]
    Number(String, &'static str),
    #[error("negative number ({0}) not allowed: {1}")]
    Negative(i64, String),
    #[error("beginning of range ({start}) below minimum ({min}): {text}")]
    BelowMinimum { start: u64, min: u64, text: String },
    #[error("end of range ({end}) above maximum ({max}): {text}")]
    AboveMaximum { end: u64, max: u64, text: String },
    #[error("beginning of range ({start}) beyond end of range ({end}): {text}")]
    Reversed { start: u64, end: u64, text: String },
    #[error("step of range should be a positive number: {0}")]
    ZeroStep(String),
}

struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAYS_OF_MONTH: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAYS_OF_WEEK: Bounds = Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Reads a schedule. Without a zone of its own it follows UTC.
///
/// Upstream: `Parser.Parse`.
pub fn parse(text: &str) -> Result<Schedule, InvalidCron> {
    if text.is_empty() {
        return Err(InvalidCron::Empty);
    }
    let (zone, text) = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        Some(rest) => {
            let (name, rest) = rest.split_once(' ').ok_or(InvalidCron::ZoneOnly)?;
            let bad = |error| InvalidCron::BadLocation { name: name.to_owned(), error };
            (load_zone(name).map_err(bad)?, rest.trim())
        }
        None => (TimeZone::UTC, text),
    };
    if text.starts_with('@') {
        return descriptor(text, zone);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    fields_of(&fields, zone).map(Schedule::Spec)
}

/// Upstream: `parseDescriptor`.
fn descriptor(text: &str, zone: TimeZone) -> Result<Schedule, InvalidCron> {
    let fields = match text {
        "@yearly" | "@annually" => ["0", "0", "1", "1", "*"],
        "@monthly" => ["0", "0", "1", "*", "*"],
        "@weekly" => ["0", "0", "*", "*", "0"],
        "@daily" | "@midnight" => ["0", "0", "*", "*", "*"],
        "@hourly" => ["0", "*", "*", "*", "*"],
        _ => {
            let unknown = || InvalidCron::Descriptor(text.to_owned());
            return every(text.strip_prefix("@every ").ok_or_else(unknown)?, text);
        }
    };
    fields_of(&fields, zone).map(Schedule::Spec)
}

/// Upstream: `Every`, `constantdelay.go`.
fn every(duration: &str, descriptor: &str) -> Result<Schedule, InvalidCron> {
    let seconds = match duration.parse::<GoDuration>() {
        Ok(duration) => i64::try_from(duration.0.as_secs()).unwrap_or(i64::MAX).max(1),
        Err(GoValueError::Negative(_)) => 1,
        Err(error) => return Err(InvalidCron::Duration { descriptor: descriptor.to_owned(), error }),
    };
    Ok(Schedule::Every { seconds })
}

fn fields_of(fields: &[&str], zone: TimeZone) -> Result<SpecSchedule, InvalidCron> {
    let [minute, hour, day_of_month, month, day_of_week] = fields else {
        return Err(InvalidCron::FieldCount(fields.iter().map(|field| (*field).to_owned()).collect()));
    };
    Ok(SpecSchedule {
        minute: field(minute, &MINUTES)?,
        hour: field(hour, &HOURS)?,
        day_of_month: field(day_of_month, &DAYS_OF_MONTH)?,
        month: field(month, &MONTHS)?,
        day_of_week: field(day_of_week, &DAYS_OF_WEEK)?,
        zone,
    })
}

/// Upstream: `getField`.
fn field(text: &str, bounds: &Bounds) -> Result<u64, InvalidCron> {
    let pieces = text.split(',').filter(|piece| !piece.is_empty());
    pieces.map(|piece| range(piece, bounds)).try_fold(0, |bits, piece| Ok(bits | piece?))
}

/// Upstream: `getRange`.
fn range(text: &str, bounds: &Bounds) -> Result<u64, InvalidCron> {
    let slashed: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = slashed.first().copied().unwrap_or_default().split('-').collect();
    let (start, mut end, mut star) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.min, bounds.max, STAR),
        [only] => {
            let only = number_or_name(only, bounds)?;
            (only, only, 0)
        }
        [start, end] => (number_or_name(start, bounds)?, number_or_name(end, bounds)?, 0),
        [start, ..] => {
            number_or_name(start, bounds)?;
            return Err(InvalidCron::Hyphens(text.to_owned()));
        }
        [] => return Err(InvalidCron::Empty),
    };
    let step = match slashed.as_slice() {
        [_] => 1,
        [_, step] => number(step)?,
        _ => return Err(InvalidCron::Slashes(text.to_owned())),
    };
    if slashed.len() == 2 && ends.len() == 1 {
        // A single number with a step runs to the maximum.
        end = bounds.max;
    }
    if step > 1 {
        star = 0;
    }
    let text = || text.to_owned();
    if start < bounds.min {
        return Err(InvalidCron::BelowMinimum { start, min: bounds.min, text: text() });
    }
    if end > bounds.max {
        return Err(InvalidCron::AboveMaximum { end, max: bounds.max, text: text() });
    }
    if start > end {
        return Err(InvalidCron::Reversed { start, end, text: text() });
    }
    if step == 0 {
        return Err(InvalidCron::ZeroStep(text()));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((start..=end).step_by(step).fold(star, |bits, value| bits | (1 << value)))
}

/// Upstream: `parseIntOrName`.
fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, InvalidCron> {
    match (bounds.min..).zip(bounds.names).find(|(_, name)| name.eq_ignore_ascii_case(text)) {
        Some((value, _)) => Ok(value),
        None => number(text),
    }
}

/// Upstream: `mustParseInt`.
fn number(text: &str) -> Result<u64, InvalidCron> {
    let number: i64 = text.parse().map_err(|error: std::num::ParseIntError| {
        let is_too_large = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
        let why = if is_too_large { "value out of range" } else { "invalid syntax" };
        InvalidCron::Number(text.to_owned(), why)
    })?;
    u64::try_from(number).map_err(|_| InvalidCron::Negative(number, text.to_owned()))
}
