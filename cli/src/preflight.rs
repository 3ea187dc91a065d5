//! The changes of a takeover: a shadow of each operator runs beside the controllers at work, and the conditions of a
//! takeover are checked.
//! looked at.
//!
//! This is the answer. Left out: taking anything over, and shadows that run in the cluster.

mod checks;
pub(crate) mod command;
mod documented;
pub(crate) mod flags;
mod look;
mod roles;
mod shadows;
mod text;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::explain::ShadowReport;

pub use look::{PreflightOptions, preflight};
pub use roles::operators;

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preflight {
    /// When it was complete.
    pub time: Timestamp,
    /// Checks that concern all operators.
    pub checks: Vec<Check>,
    /// Each operator.
    pub operators: Vec<Inspected>,
}

/// One operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspected {
    /// `deployment-operator`.
    pub operator: String,
    /// The result of its shadow.
    pub answer: Answer,
    /// Its shadow's last report, if there was one.
    pub report: Option<ShadowReport>,
    /// The sentences of the operator's page about differences that are intended.
    pub documented: Vec<&'static str>,
    /// Why there is no answer; `""` where there is.
    pub failure: String,
    /// Checks of this operator.
    pub checks: Vec<Check>,
}

/// The result of a shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// A takeover would write nothing.
    Nothing,
    /// A takeover would make the writes that the report lists.
    Differences,
    /// Time was up before everything was looked at and at rest.
    Unfinished,
    /// The shadow could not be run or asked.
    Failed,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// `lease`, `role`.
    pub about: &'static str,
    /// How it is.
    pub level: Level,
    /// The finding.
    pub text: String,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// As it should be.
    Fine,
    /// It could not be seen.
    Unknown,
    /// Somebody should know it.
    Warning,
    /// A takeover would go wrong.
    Problem,
}

impl Check {
    fn new(about: &'static str, level: Level, text: impl Into<String>) -> Self {
        Self { about, level, text: text.into() }
    }
}

/// The result of a preflight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A takeover would write nothing, and nothing stands in its way.
    Clear,
    /// It would write something, or something stands in its way.
    NotClear,
    /// Some shadow has not come to an answer.
    Unanswered,
}

impl Preflight {
    /// The result of all operators together.
    pub fn outcome(&self) -> Outcome {
        let answers = || self.operators.iter().map(|inspected| inspected.answer);
        let mut checks = self.operators.iter().flat_map(|inspected| &inspected.checks).chain(&self.checks);
        if answers().any(|answer| matches!(answer, Answer::Unfinished | Answer::Failed)) {
            return Outcome::Unanswered;
        }
        let is_clear =
            answers().all(|answer| answer == Answer::Nothing) && !checks.any(|check| check.level == Level::Problem);
        if is_clear { Outcome::Clear } else { Outcome::NotClear }
    }
}

#[cfg(test)]
mod tests;
