//! The result as text. Passed checks are only counted.

use std::fmt;

use serde_json::Value;
use shared::api::explain::{Difference, FieldDifference, ShadowReport};

use super::documented::documented;
use super::report::{Answer, Check, Inspected, Level, Preflight};
use crate::words::{line, many};

const CHARS_MAX: usize = 80;

impl fmt::Display for Preflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for inspected in &self.operators {
            write!(f, "{inspected}")?;
        }
        show(f, "", &self.checks)
    }
}

impl fmt::Display for Inspected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operator, answer, report, documented: _, failure, checks } = self;
        let seen = report.as_ref().map(looked_at).unwrap_or_default();
        let count = report.as_ref().map_or(0, |report| {
            u64::try_from(report.differences.len()).unwrap_or(u64::MAX).saturating_add(report.more_differences)
        });
        let writes = many(i64::try_from(count).unwrap_or(i64::MAX), "write");
        match answer {
            Answer::Nothing => writeln!(f, "{operator}: {seen} looked at: a takeover would write nothing")?,
            Answer::Differences => writeln!(f, "{operator}: {seen} looked at: a takeover would make {writes}")?,
            Answer::Unfinished => writeln!(f, "{operator}: incomplete, {writes} so far: {failure}")?,
            Answer::Failed => writeln!(f, "{operator}: no answer: {failure}")?,
        }
        for difference in report.iter().flat_map(|report| &report.differences) {
            show_difference(f, operator, difference)?;
        }
        if let Some(more) = report.as_ref().map(|report| report.more_differences).filter(|more| *more > 0) {
            writeln!(f, "  … and {more} more")?;
        }
        show(f, "  ", checks)
    }
}

/// `1,204 Deployments`, or how many keys of which queue.
fn looked_at(report: &ShadowReport) -> String {
    let queues = facts::of(&report.operator).map_or(&[][..], |facts| facts.queues);
    let said = report.looked_at.iter().map(|(name, count)| {
        match queues.iter().find(|queue| queue.name == name).and_then(|queue| queue.kind) {
            Some(kind) if *count == 1 => format!("1 {kind}"),
            Some(kind) => format!("{} {kind}s", thousands(*count)),
            None => format!("{} in queue {name}", thousands(*count)),
        }
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() { "nothing".to_owned() } else { said.join(", ") }
}

fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut said = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            said.push(',');
        }
        said.push(digit);
    }
    said
}

fn show_difference(f: &mut fmt::Formatter<'_>, operator: &str, difference: &Difference) -> fmt::Result {
    let Difference { queue: _, key: _, verb, resource, object, stages, fields, since: _ } = difference;
    writeln!(f, "  {verb} {resource} {object}")?;
    for FieldDifference { path, has, wants } in fields {
        writeln!(f, "    {path}: {} -> {}", value(has), value(wants))?;
    }
    let stages: Vec<String> = stages.iter().map(|stage| line(&stage.text)).collect();
    if !stages.is_empty() {
        writeln!(f, "    decided: {}", stages.join("; "))?;
    }
    match documented(operator, difference) {
        Some(sentence) => writeln!(f, "    on purpose: {sentence}"),
        None => Ok(()),
    }
}

fn value(value: &Value) -> String {
    let text = if value.is_null() { "nothing".to_owned() } else { value.to_string() };
    if text.chars().count() <= CHARS_MAX {
        return text;
    }
    text.chars().take(CHARS_MAX).chain(['…']).collect()
}

fn show(f: &mut fmt::Formatter<'_>, indent: &str, checks: &[Check]) -> fmt::Result {
    let fine = checks.iter().filter(|check| check.level == Level::Fine).count();
    let mut others: Vec<&Check> = checks.iter().filter(|check| check.level != Level::Fine).collect();
    others.sort_by_key(|check| std::cmp::Reverse(check.level));
    for Check { about, level, text } in others {
        let level = match level {
            Level::Fine => "fine",
            Level::Unknown => "unknown",
            Level::Warning => "note",
            Level::Problem => "PROBLEM",
        };
        writeln!(f, "{indent}{level}: {about}: {text}")?;
    }
    let checks = many(i64::try_from(fine).unwrap_or(i64::MAX), "other check");
    if fine > 0 { writeln!(f, "{indent}{checks} passed") } else { Ok(()) }
}
