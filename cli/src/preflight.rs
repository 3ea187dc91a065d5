//! What a takeover would change: a shadow of each operator is run beside whoever works, and all that a takeover needs is
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
    /// What concerns all operators.
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
    /// What its shadow came to.
    pub answer: Answer,
    /// What its shadow has seen, as far as it came.
    pub report: Option<ShadowReport>,
    /// What the operator's page says of differences among those that are so on purpose.
    pub documented: Vec<&'static str>,
    /// Why there is no answer; `""` where there is.
    pub failure: String,
    /// What was looked at besides.
    pub checks: Vec<Check>,
}

/// What a shadow came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// A takeover would write nothing.
    Nothing,
    /// A takeover would write what the report lists.
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
    /// What was found.
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

/// What a preflight comes to.
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
    /// What it comes to.
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
