//! The next instant at which a calendar matches a schedule.
//!
//! As in upstream's library, the search goes from the month down to the minute, in real hours: a wall time that the
//! clocks skip is left out that day, and one that they repeat runs twice.
//!
//! Upstream: `SpecSchedule.Next`, `spec.go` of robfig/cron.

use jiff::civil::{DateTime, time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};

use super::{STAR, SpecSchedule};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// The limit of a search, in years.
const YEARS: i16 = 5;

/// The result of one stage of the search; none beyond the representable years.
#[derive(PartialEq)]
enum Stage {
    Matches,
    /// A greater field has changed: start again.
    Wrapped,
}

impl SpecSchedule {
    /// The first second after this one that matches, both since the epoch.
    pub(super) fn next(&self, after: i64) -> Option<i64> {
        // An empty field matches no time: five years need not be searched.
        if [self.minute, self.hour, self.month].iter().any(|field| field & !STAR == 0) {
            return None;
        }
        let mut search = Search { spec: self, at: Local::at(&self.zone, after.checked_add(1)?)?, is_cut: false };
        let last_year = search.at.wall.year().saturating_add(YEARS);
        while search.at.wall.year() <= last_year {
            if search.month()? == Stage::Matches
                && search.day()? == Stage::Matches
                && search.hour()? == Stage::Matches
                && search.minute()? == Stage::Matches
            {
                return Some(search.at.second);
            }
        }
        None
    }

    /// Upstream: `dayMatches`.
    fn has_day(&self, wall: DateTime) -> bool {
        let by_month = has(self.day_of_month, wall.day());
        let by_week = has(self.day_of_week, wall.weekday().to_sunday_zero_offset());
        if (self.day_of_month | self.day_of_week) & STAR == 0 { by_month || by_week } else { by_month && by_week }
    }
}

fn has(field: u64, value: i8) -> bool {
    u32::try_from(value).ok().and_then(|value| field.checked_shr(value)).is_some_and(|field| field & 1 == 1)
}

/// An instant, and its wall time in a zone.
#[derive(Clone, Copy)]
struct Local {
    second: i64,
    wall: DateTime,
}

impl Local {
    fn at(zone: &TimeZone, second: i64) -> Option<Self> {
        let shown = Timestamp::from_second(second.checked_add(offset(zone, second)?)?).ok()?;
        Some(Self { second, wall: Offset::UTC.to_datetime(shown) })
    }

    /// The instant of a wall time: the first of two, or one nearby if there is none.
    ///
    /// Upstream: `Date`, Go's time package.
    fn showing(zone: &TimeZone, wall: DateTime) -> Option<Self> {
        let shown = Offset::UTC.to_timestamp(wall).ok()?.as_second();
        let guess = offset(zone, shown)?;
        let second = if guess == 0 { shown } else { shown - offset(zone, shown.checked_sub(guess)?)? };
        Self::at(zone, second)
    }
}

fn offset(zone: &TimeZone, second: i64) -> Option<i64> {
    Timestamp::from_second(second).ok().map(|at| i64::from(zone.to_offset(at).seconds()))
}

struct Search<'a> {
    spec: &'a SpecSchedule,
    at: Local,
    /// Whether the lower fields were set to their first values, which happens once.
    is_cut: bool,
}

impl Search<'_> {
    fn add(&mut self, seconds: i64) -> Option<()> {
        self.at = Local::at(&self.spec.zone, self.at.second.checked_add(seconds)?)?;
        Some(())
    }

    fn show(&mut self, wall: DateTime) -> Option<()> {
        self.at = Local::showing(&self.spec.zone, wall)?;
        Some(())
    }

    fn cut(&mut self, wall: DateTime) -> Option<()> {
        if self.is_cut {
            return Some(());
        }
        self.is_cut = true;
        self.show(wall)
    }

    fn month(&mut self) -> Option<Stage> {
        while !has(self.spec.month, self.at.wall.month()) {
            self.cut(self.at.wall.date().first_of_month().to_datetime(time(0, 0, 0, 0)))?;
            let wall = self.at.wall;
            let first = wall.date().first_of_month().checked_add(1.month()).ok()?;
            // As in Go, a day that the next month does not have overflows into the month after it.
            let date = first.checked_add((wall.day() - 1).days()).ok()?;
            self.show(date.to_datetime(wall.time()))?;
            if self.at.wall.month() == 1 {
                return Some(Stage::Wrapped);
            }
        }
        Some(Stage::Matches)
    }

    fn day(&mut self) -> Option<Stage> {
        while !self.spec.has_day(self.at.wall) {
            self.cut(self.at.wall.date().to_datetime(time(0, 0, 0, 0)))?;
            let Local { second: before, wall } = self.at;
            self.show(wall.date().tomorrow().ok()?.to_datetime(wall.time()))?;
            if self.at.second <= before {
                // The calendar skips the whole day, as in Apia at the end of 2011, where upstream hangs.
                self.add(before - self.at.second + 24 * HOUR)?;
            }
            // The clocks may have skipped midnight.
            match i64::from(self.at.wall.hour()) {
                0 => {}
                hour if hour > 12 => self.add((24 - hour) * HOUR)?,
                hour => self.add(-hour * HOUR)?,
            }
            if self.at.wall.day() == 1 {
                return Some(Stage::Wrapped);
            }
        }
        Some(Stage::Matches)
    }

    fn hour(&mut self) -> Option<Stage> {
        while !has(self.spec.hour, self.at.wall.hour()) {
            let wall = self.at.wall;
            self.cut(wall.date().to_datetime(time(wall.hour(), 0, 0, 0)))?;
            self.add(HOUR)?;
            if self.at.wall.hour() == 0 {
                return Some(Stage::Wrapped);
            }
        }
        Some(Stage::Matches)
    }

    /// The seconds too, which are always zero.
    fn minute(&mut self) -> Option<Stage> {
        while !has(self.spec.minute, self.at.wall.minute()) {
            if !self.is_cut {
                self.is_cut = true;
                self.add(-self.at.second.rem_euclid(MINUTE))?;
            }
            self.add(MINUTE)?;
            if self.at.wall.minute() == 0 {
                return Some(Stage::Wrapped);
            }
        }
        match i64::from(self.at.wall.second()) {
            0 => Some(Stage::Matches),
            second => {
                self.is_cut = true;
                self.add(MINUTE - second)?;
                Some(Stage::Wrapped)
            }
        }
    }
}
