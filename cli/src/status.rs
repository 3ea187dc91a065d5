//! How the operators are, and who runs each controller, as a table: pure.
//!
//! Left out: asking anybody.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::explain::{OperatorStatus, Role};

use crate::controllers::CONTROLLERS;
use crate::diagnose::operators::controller_of;
use crate::evidence::{Manager, Seen};
use crate::lease::{self, Lease, Runner};
use crate::words::{line, list, span};

/// All that was read about the operators.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// When.
    pub now: Timestamp,
    /// Each operator that has a Lease, or an address that somebody gave.
    pub operators: Vec<Surveyed>,
    /// kube-controller-manager.
    pub manager: Manager,
}

/// One operator.
#[derive(Clone, Debug, Default)]
pub struct Surveyed {
    /// `deployment-operator`.
    pub operator: String,
    /// Its Lease.
    pub lease: Seen<Lease>,
    /// How many of its pods are ready; none where pods may not be read.
    pub ready: Option<usize>,
    /// Its leader's answer.
    pub said: Option<OperatorStatus>,
    /// Why it said nothing.
    pub silence: Option<String>,
    /// When kube-controller-manager last wrote a status that this operator writes; none where nobody looked.
    pub wrote: Option<Timestamp>,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// When this was so.
    pub time: Timestamp,
    /// One row for each operator.
    pub operators: Vec<Row>,
    /// The controllers, each with the program that runs it.
    pub controllers: Vec<Controller>,
    /// Warnings that somebody should look at.
    pub alarms: Vec<String>,
}

/// A controller, and the program that runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    /// Upstream's name.
    pub name: String,
    /// The program that runs it.
    pub runner: Runner,
}

/// One operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// `deployment-operator`.
    pub operator: String,
    /// Its version; `""` where it said nothing.
    pub version: String,
    /// The pod, or the host, of its leader; `""` for none.
    pub leader: String,
    /// Since when that one leads.
    pub since: Option<Timestamp>,
    /// How many other pods of it are ready.
    pub standbys: Option<usize>,
    /// How many caches are synced, and how many there are: those that nothing needs at the moment are not.
    pub synced: Option<(usize, usize)>,
    /// How many keys wait.
    pub waiting: usize,
    /// Since when the oldest of them does.
    pub oldest: Option<Timestamp>,
    /// How many keys failed last time.
    pub failing: usize,
    /// The last error of any key.
    pub last_error: String,
    /// When that was.
    pub last_error_time: Option<Timestamp>,
    /// Why the leader was not asked; `""` where it was.
    pub silence: String,
}

fn row(surveyed: &Surveyed) -> Row {
    let lease = surveyed.lease.known();
    let mut row = Row {
        operator: surveyed.operator.clone(),
        leader: lease.map(|lease| lease.pod().to_owned()).unwrap_or_default(),
        since: lease.filter(|lease| !lease.holder.is_empty()).and_then(|lease| lease.acquired),
        standbys: surveyed.ready.map(|ready| ready.saturating_sub(1)),
        silence: surveyed.silence.clone().unwrap_or_default(),
        ..Row::default()
    };
    if let Some(said) = &surveyed.said {
        row.version.clone_from(&said.version);
        row.synced = Some((said.caches.iter().filter(|cache| cache.synced).count(), said.caches.len()));
        row.waiting = said.queues.iter().map(|queue| queue.waiting).sum();
        row.oldest = said.queues.iter().filter_map(|queue| queue.oldest).min();
        row.failing = said.queues.iter().map(|queue| queue.failing).sum();
        let last = said.queues.iter().filter_map(|queue| queue.last_error.as_ref()).max_by_key(|failure| failure.time);
        row.last_error = last.map(|failure| format!("{}: {}", failure.key, line(&failure.error))).unwrap_or_default();
        row.last_error_time = last.map(|failure| failure.time);
    }
    row
}

impl Status {
    /// From what was read.
    pub fn new(survey: &Survey) -> Self {
        let controllers = CONTROLLERS.iter().map(|(name, _)| {
            let found = survey.operators.iter().find(|surveyed| controller_of(&surveyed.operator) == *name);
            let lease = found.map_or(Seen::Absent, |surveyed| surveyed.lease.clone());
            let since = lease::both_since(&lease, &survey.manager, survey.now);
            let wrote = found.and_then(|surveyed| surveyed.wrote);
            let wrote = wrote.zip(since).is_some_and(|(wrote, since)| wrote > since);
            let runner = lease::runner(&lease, &survey.manager, name, wrote, survey.now);
            Controller { name: (*name).to_owned(), runner }
        });
        let controllers: Vec<Controller> = controllers.collect();
        let operators = survey.operators.iter().map(row).collect();
        Self { time: survey.now, alarms: alarms(survey, &controllers), operators, controllers }
    }

    /// Whether somebody should look at something.
    pub fn is_alarming(&self) -> bool {
        !self.alarms.is_empty()
    }

    /// Why operators were not asked, each reason once.
    fn silences(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut silences: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in self.operators.iter().filter(|row| !row.silence.is_empty()) {
            silences.entry(&row.silence).or_default().push(&row.operator);
        }
        silences
    }

    fn run_by(&self, runner: Runner) -> Vec<&str> {
        self.controllers.iter().filter(|controller| controller.runner == runner).map(|c| c.name.as_str()).collect()
    }
}

fn alarms(survey: &Survey, controllers: &[Controller]) -> Vec<String> {
    let usual = |name: &str| CONTROLLERS.iter().any(|(known, usual)| *known == name && *usual);
    let mut alarms = Vec::new();
    for controller in controllers.iter().filter(|controller| controller.runner == Runner::Both) {
        alarms.push(format!("{} runs twice: its operator and kube-controller-manager both run it", controller.name));
    }
    let nobody = controllers.iter().filter(|controller| controller.runner == Runner::Nobody && usual(&controller.name));
    let nobody: Vec<&str> = nobody.map(|controller| controller.name.as_str()).collect();
    match nobody.len() {
        0 => {}
        // Where it was never at work each controller that has no operator would be a name more.
        count if survey.manager.lease == Seen::Absent => {
            let named = list(&nobody);
            alarms.push(format!(
                "no kube-controller-manager has a Lease here, and nobody is seen to run {count} controllers: {named}"
            ));
        }
        _ => alarms.push(format!("nobody runs {}", nobody.join(", "))),
    }
    for surveyed in &survey.operators {
        let Some(said) = &surveyed.said else { continue };
        for cache in said.caches.iter().filter_map(|cache| Some((cache, cache.failing.as_ref()?))) {
            let (cache, error) = cache;
            alarms.push(format!("{} cannot follow {}: {}", surveyed.operator, cache.resource, line(error)));
        }
        if said.role == Role::Shadow {
            alarms.push(format!("{} runs as a shadow: it writes nothing", surveyed.operator));
        }
    }
    alarms
}

const HEADINGS: [&str; 10] =
    ["OPERATOR", "VERSION", "LEADER", "SINCE", "STANDBYS", "SYNCED", "WAITING", "OLDEST", "FAILING", "LAST ERROR"];

impl Row {
    fn cells(&self, now: Timestamp) -> [String; 10] {
        let age = |time: Option<Timestamp>| {
            time.map_or_else(|| "-".to_owned(), |time| span(now.as_second() - time.as_second()))
        };
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let said = |text: String| if self.version.is_empty() { "?".to_owned() } else { text };
        let last = if !self.silence.is_empty() {
            "not asked".to_owned()
        } else if self.last_error.is_empty() {
            "-".to_owned()
        } else {
            format!("{} ago: {}", age(self.last_error_time), self.last_error)
        };
        [
            self.operator.clone(),
            said(self.version.clone()),
            or_dash(&self.leader),
            age(self.since),
            self.standbys.map_or_else(|| "?".to_owned(), |count| count.to_string()),
            self.synced.map_or_else(|| "?".to_owned(), |(synced, all)| format!("{synced}/{all}")),
            said(self.waiting.to_string()),
            age(self.oldest),
            said(self.failing.to_string()),
            last,
        ]
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![HEADINGS.map(str::to_owned)];
        rows.extend(self.operators.iter().map(|row| row.cells(self.time)));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        if self.operators.is_empty() {
            writeln!(f, "no operators are installed here")?;
        }
        writeln!(f)?;
        let said = [
            (Runner::Operator, "run by operators"),
            (Runner::Manager, "run by kube-controller-manager"),
            (Runner::Both, "run by both"),
            (Runner::Unknown, "nobody can tell who runs"),
        ];
        for (runner, text) in said {
            let names = self.run_by(runner);
            let names = if runner == Runner::Operator { names.join(", ") } else { list(&names) };
            if !names.is_empty() && !self.run_by(runner).is_empty() {
                writeln!(f, "{text}: {names}")?;
            }
        }
        for (why, operators) in self.silences() {
            writeln!(f, "not asked: {}: {why}", list(&operators))?;
        }
        for alarm in &self.alarms {
            writeln!(f, "ALARM: {alarm}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
