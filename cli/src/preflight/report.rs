//! The result of a preflight.

use jiff::Timestamp;
use serde::Serialize;
use shared::api::explain::ShadowReport;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preflight {
    pub time: Timestamp,
    pub checks: Vec<Check>,
    pub operators: Vec<Inspected>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspected {
    pub operator: String,
    pub answer: Answer,
    pub report: Option<ShadowReport>,
    pub documented: Vec<&'static str>,
    pub failure: String,
    pub checks: Vec<Check>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Nothing,
    Differences,
    /// The time limit passed first.
    Unfinished,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    pub about: &'static str,
    pub level: Level,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    Fine,
    /// It could not be read.
    Unknown,
    Warning,
    Problem,
}

impl Check {
    pub(super) fn new(about: &'static str, level: Level, text: impl Into<String>) -> Self {
        Self { about, level, text: text.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Clear,
    NotClear,
    Unanswered,
}

impl Preflight {
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
