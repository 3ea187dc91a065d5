//! The trace as text. Syncs that did nothing are only counted.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use shared::api::explain::Version;

use super::story::{Link, Origin, Step, Trace, Writer};
use crate::words::{line, many, span};

impl Trace {
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stories.iter().flat_map(|story| &story.syncs).flat_map(Step::all)
    }

    /// `pods/web-a@12`; with the namespace if it is another one.
    fn named(&self, Version { resource, object, version }: &Version) -> String {
        let plural = resource.split('.').next().unwrap_or_default();
        let own = format!("{}/", self.namespace);
        let name = object.strip_prefix(&own).filter(|_| !self.namespace.is_empty()).unwrap_or(object);
        format!("{plural}/{name}@{version}")
    }

    fn wrote(&self, step: &Step) -> String {
        let named: Vec<String> = step.wrote.iter().map(|version| self.named(version)).collect();
        let more = (step.more_written > 0).then(|| format!("{} more", step.more_written));
        named.into_iter().chain(more).collect::<Vec<_>>().join(", ")
    }

    fn because(&self, step: &Step) -> String {
        let Some(cause) = step.cause.as_ref().map(|cause| self.named(cause)) else { return String::new() };
        match &step.link {
            Link::First => String::new(),
            Link::Exact => format!(" due to {cause}"),
            Link::Later { wrote, by } => {
                let changed = by.as_ref().map_or_else(|| "changed again".to_owned(), |by| credited("changed", by));
                format!(" due to {cause} ({changed} since @{wrote})")
            }
            Link::Unnamed => format!(" due to {cause} (probably one of its unnamed writes)"),
        }
    }

    fn sync(&self, f: &mut fmt::Formatter<'_>, step: &Step, since: &str, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        let key = self.key(&step.key);
        let times = if step.count > 1 { format!(", {} times", step.count) } else { String::new() };
        let (operator, decided, because) = (&step.operator, line(&step.decided), self.because(step));
        write!(f, "{} {indent}{since} {operator} syncs {key}{because}: {decided}{times}", clock(step.time))?;
        let wrote = self.wrote(step);
        if !wrote.is_empty() {
            write!(f, " -> wrote {wrote}")?;
        }
        if let Some(error) = &step.error {
            write!(f, " -> failed: {}", line(error))?;
        }
        writeln!(f)?;
        for next in step.followed.iter().filter(|next| !next.is_idle()) {
            let since = next.since_cause.map(milliseconds).unwrap_or_default();
            self.sync(f, next, &since, depth + 1)?;
        }
        Ok(())
    }

    fn key<'a>(&self, key: &'a str) -> &'a str {
        let own = format!("{}/", self.namespace);
        key.strip_prefix(&own).filter(|_| !self.namespace.is_empty()).unwrap_or(key)
    }

    fn origin(&self, origin: &Origin) -> (String, Option<Timestamp>) {
        match origin {
            Origin::Change { object, generation, by } => {
                let generation = generation.map(|number| format!(", generation {number}")).unwrap_or_default();
                let changed = by.as_ref().map_or_else(
                    || "changed by an unknown client: no recorded decision wrote it".to_owned(),
                    |by| credited("changed", by),
                );
                (format!("{}{generation}: {changed}", self.named(object)), by.as_ref().map(|by| by.time))
            }
            Origin::Lost { object, by } => {
                let text = format!(
                    "{}: {}, whose decision is not recorded: displaced by later ones, lost in a restart, or not requested",
                    self.named(object),
                    credited("written", by)
                );
                (text, Some(by.time))
            }
            Origin::NoChange => ("no change: a timer, a retry or a start".to_owned(), None),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, operators) = (self.steps().count(), self.steps().map(|step| &step.operator).collect::<BTreeSet<_>>());
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let name = self.subject.split_once('/').map_or(self.subject.as_str(), |(_, name)| name);
        let (syncs, of) = (many(count(all), "recorded sync"), many(count(operators.len()), "operator"));
        writeln!(f, "{name}: {syncs} by {of}")?;
        let mut idle = 0;
        for story in &self.stories {
            let (told, silent): (Vec<&Step>, Vec<&Step>) = story.syncs.iter().partition(|step| !step.is_idle());
            idle += silent.iter().map(|step| step.all().count()).sum::<usize>();
            let Some(first) = told.first() else { continue };
            let (origin, time) = self.origin(&story.origin);
            let (day, began) = (first.time.strftime("%F"), time.map(|time| time.strftime("%T").to_string()));
            writeln!(f, "{day}\n{:CLOCK$} {origin}", began.unwrap_or_default())?;
            for step in told {
                let since = time.map(|time| seconds(step.time, time)).unwrap_or_default();
                self.sync(f, step, &since, 1)?;
                idle += step.all().flat_map(|step| &step.followed).filter(|step| step.is_idle()).count();
            }
        }
        if idle > 0 {
            writeln!(f, "{} wrote nothing (see -o json)", many(count(idle), "sync"))?;
        }
        if !self.missing.is_empty() {
            writeln!(f, "not read: {}", self.missing.join("; "))?;
        }
        Ok(())
    }
}

const CLOCK: usize = "14:03:11.012".len();

fn clock(time: Timestamp) -> String {
    time.strftime("%H:%M:%S%.3f").to_string()
}

/// `changed by kubelet`, or `probably changed by kubelet`.
fn credited(verb: &str, Writer { manager, time: _, is_inferred }: &Writer) -> String {
    let probably = if *is_inferred { "probably " } else { "" };
    format!("{probably}{verb} by {manager}")
}

/// `+18 ms`, `+1.2 s`, `+3 min`.
fn milliseconds(between: i64) -> String {
    match between {
        ..0 => format!("{between} ms (clocks differ)"),
        0..1_000 => format!("+{between} ms"),
        1_000..60_000 => format!("+{}.{} s", between / 1_000, between % 1_000 / 100),
        60_000.. => format!("+{}", span(between / 1_000)),
    }
}

fn seconds(time: Timestamp, since: Timestamp) -> String {
    match time.as_second() - since.as_second() {
        ..0 => "(clocks differ)".to_owned(),
        0 => "+<1 s".to_owned(),
        between => format!("+{}", span(between)),
    }
}
