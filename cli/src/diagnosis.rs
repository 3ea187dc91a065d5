//! The answer of `why`: the cause and the evidence.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::{Cause, State};
use crate::evidence::Evidence;
use crate::output::printable;
use crate::words::when;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    pub subject: String,
    pub namespace: String,
    pub time: Timestamp,
    pub state: State,
    pub summary: String,
    pub cause: Cause,
    pub chain: Vec<Link>,
    pub not_seen: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    pub depth: usize,
    /// `replicaset/web-6d4`, `deployment-operator`.
    pub about: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Whether it may explain the state.
    pub is_bad: bool,
}

impl Diagnosis {
    pub(crate) fn new(evidence: &Evidence, cause: Cause, chain: Vec<Link>) -> Self {
        let target = &evidence.target;
        let not_seen = evidence.unread.iter().map(|hidden| format!("{}: {}", hidden.what, hidden.why)).collect();
        Self {
            subject: format!("{}/{}", target.kind.to_lowercase(), target.name),
            namespace: target.namespace.clone(),
            time: evidence.now,
            state: cause.state(),
            summary: format!("{}: {}", target.name, cause.text(evidence.now)),
            cause,
            chain,
            not_seen,
        }
    }

    pub fn coloured(&self) -> String {
        let colour = match self.state {
            State::AtRest => GREEN,
            State::InProgress => YELLOW,
            State::Stuck => RED,
        };
        self.lines(|text, is_bad, is_first| match (is_first, is_bad) {
            (true, _) => format!("{colour}{text}{PLAIN}"),
            (false, true) => format!("{YELLOW}{text}{PLAIN}"),
            (false, false) => text,
        })
    }

    /// The lines, printable before `paint` colours them.
    fn lines(&self, paint: impl Fn(String, bool, bool) -> String) -> String {
        let paint = |text: &str, is_bad, is_first| paint(printable(text), is_bad, is_first);
        let mut lines = vec![paint(&self.summary, false, true)];
        for Link { depth, about, text, time, is_bad } in &self.chain {
            let time = time.map(|time| format!(" ({})", when(time, self.time))).unwrap_or_default();
            lines.push(paint(&format!("{}{about}: {text}{time}", "  ".repeat(depth + 1)), *is_bad, false));
        }
        if !self.not_seen.is_empty() {
            lines.push(printable(&format!("not read: {}", self.not_seen.join("; "))));
        }
        lines.join("\n")
    }
}

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines(|text, _, _| text))
    }
}
