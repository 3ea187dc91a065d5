//! The answer of `status`: the operators, and what runs each controller.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::explain::{OperatorStatus, Role};

use crate::controllers::CONTROLLERS;
use crate::diagnose::operators::controller_of;
use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::read::leases::MANAGER;
use crate::runner::{self, Manager, Runner};
use crate::words::{line, list, span};

#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub now: Timestamp,
    pub operators: Vec<Surveyed>,
    pub manager: Manager,
}

#[derive(Clone, Debug, Default)]
pub struct Surveyed {
    pub operator: String,
    pub lease: Lookup<Lease>,
    /// The pod or node of the replica that works.
    pub leader: String,
    /// None if pods are not readable.
    pub ready: Option<usize>,
    pub said: Option<OperatorStatus>,
    pub silence: Option<String>,
    pub wrote: Option<Timestamp>,
    /// The replica of the process with several operators that says it works, too.
    pub rival: Option<String>,
}

impl Surveyed {
    /// Two work: while a Lease changes hands, only one of them says so.
    fn rival(&self) -> Option<&str> {
        let works = self.said.as_ref().is_some_and(|said| said.role == Role::Leader);
        self.rival.as_deref().filter(|_| works)
    }
}

/// How an operator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    Own,
    /// In the process of its family.
    Group,
    /// In the process that takes the place of kube-controller-manager.
    OneProcess,
}

impl Form {
    fn of(lease: &Lease) -> Self {
        match lease.common() {
            None => Self::Own,
            Some((_, MANAGER)) => Self::OneProcess,
            Some(_) => Self::Group,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub time: Timestamp,
    pub operators: Vec<Row>,
    pub controllers: Vec<Controller>,
    pub alarms: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    pub name: String,
    pub runner: Runner,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub operator: String,
    pub version: String,
    /// None if nobody holds its Lease.
    pub form: Option<Form>,
    pub leader: String,
    pub since: Option<Timestamp>,
    pub standbys: Option<usize>,
    /// Synced caches, and all; caches on demand are not synced while unused.
    pub synced: Option<(usize, usize)>,
    pub waiting: usize,
    pub oldest: Option<Timestamp>,
    pub failing: usize,
    pub last_error: String,
    pub last_error_time: Option<Timestamp>,
    pub silence: String,
}

fn row(surveyed: &Surveyed) -> Row {
    let held = surveyed.lease.known().filter(|lease| !lease.holder.is_empty());
    let mut row = Row {
        operator: surveyed.operator.clone(),
        form: held.map(Form::of),
        leader: surveyed.leader.clone(),
        since: held.and_then(|lease| lease.acquired),
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
    pub fn new(survey: &Survey) -> Self {
        let controllers = CONTROLLERS.iter().map(|(name, _)| {
            let found = survey.operators.iter().find(|surveyed| controller_of(&surveyed.operator) == *name);
            let lease = found.map_or(Lookup::Absent, |surveyed| surveyed.lease.clone());
            let since = runner::both_since(&lease, &survey.manager, survey.now);
            let wrote = found.and_then(|surveyed| surveyed.wrote);
            let wrote = wrote.zip(since).is_some_and(|(wrote, since)| wrote > since);
            let is_twice = wrote || found.is_some_and(|surveyed| surveyed.rival().is_some());
            let runner = runner::runner(&lease, &survey.manager, name, is_twice, survey.now);
            Controller { name: (*name).to_owned(), runner }
        });
        let controllers: Vec<Controller> = controllers.collect();
        let operators = survey.operators.iter().map(row).collect();
        Self { time: survey.now, alarms: alarms(survey, &controllers), operators, controllers }
    }

    pub fn is_alarming(&self) -> bool {
        !self.alarms.is_empty()
    }

    /// Operators that were not asked, by reason.
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
    for Controller { name, .. } in controllers.iter().filter(|controller| controller.runner == Runner::Both) {
        let found = survey.operators.iter().find(|surveyed| controller_of(&surveyed.operator) == *name);
        let other = match found.and_then(Surveyed::rival) {
            Some(rival) => format!("the process of several operators on {rival}"),
            None => "kube-controller-manager".to_owned(),
        };
        alarms.push(format!("{name} is run twice: by its operator and by {other}"));
    }
    let nobody = controllers.iter().filter(|controller| controller.runner == Runner::Nobody && usual(&controller.name));
    let nobody: Vec<&str> = nobody.map(|controller| controller.name.as_str()).collect();
    match nobody.len() {
        0 => {}
        // Without kube-controller-manager, every controller without an operator would be listed.
        count if survey.manager.lease == Lookup::Absent => {
            let named = list(&nobody);
            alarms.push(format!(
                "kube-controller-manager has no Lease, and {count} controllers are not running: {named}"
            ));
        }
        _ => alarms.push(format!("not running: {}", nobody.join(", "))),
    }
    for surveyed in &survey.operators {
        let Some(said) = &surveyed.said else { continue };
        for cache in said.caches.iter().filter_map(|cache| Some((cache, cache.failing.as_ref()?))) {
            let (cache, error) = cache;
            alarms.push(format!("{} cannot list or watch {}: {}", surveyed.operator, cache.resource, line(error)));
        }
        if said.role == Role::Shadow {
            alarms.push(format!("{} runs as a shadow and writes nothing", surveyed.operator));
        }
    }
    alarms
}

const HEADINGS: [&str; 11] = [
    "OPERATOR",
    "VERSION",
    "FORM",
    "LEADER",
    "SINCE",
    "STANDBYS",
    "SYNCED",
    "WAITING",
    "OLDEST",
    "FAILING",
    "LAST ERROR",
];

impl Form {
    fn text(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Group => "group",
            Self::OneProcess => "one process",
        }
    }
}

impl Row {
    fn cells(&self, now: Timestamp) -> [String; 11] {
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
            self.form.map_or("-", Form::text).to_owned(),
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
            writeln!(f, "no operators are installed")?;
        }
        writeln!(f)?;
        let said = [
            (Runner::Operator, "run by operators"),
            (Runner::Process, "run in a process of several"),
            (Runner::Manager, "run by kube-controller-manager"),
            (Runner::Both, "run by both"),
            (Runner::Unknown, "runner unknown"),
        ];
        for (runner, text) in said {
            let names = self.run_by(runner);
            let is_ours = matches!(runner, Runner::Operator | Runner::Process);
            let names = if is_ours { names.join(", ") } else { list(&names) };
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
