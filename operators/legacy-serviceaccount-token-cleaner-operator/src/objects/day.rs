//! A day of UTC, as labels and the ConfigMap write it.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(Date);

impl Day {
    /// Reads `2026-01-31` and no other form.
    pub fn parse(text: &str) -> Option<Self> {
        let day = Self(text.parse().ok()?);
        let is_its_form = text.len() == "2026-01-31".len() && day.to_string() == text;
        is_its_form.then_some(day)
    }

    pub fn of(instant: Timestamp) -> Self {
        Self(Offset::UTC.to_datetime(instant).date())
    }

    /// When it is over; none for the last representable day.
    pub fn end(self) -> Option<Timestamp> {
        let next = self.0.tomorrow().ok()?;
        Offset::UTC.to_timestamp(next.at(0, 0, 0, 0)).ok()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
