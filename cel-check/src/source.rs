//! An expression's text, and messages with the place that they are about.
//!
//! Upstream: cel-go's `common/source.go`, `common/error.go` and `common/errors.go`.

use std::fmt::Write as _;

use crate::undecided::Undecided;

/// How many errors are told of one expression.
const MAX_ERRORS: usize = 100;
/// How long the messages about one expression may be together.
const MAX_BYTES: usize = 1 << 20;
/// Longer lines are left out of a message.
const MAX_SNIPPET: usize = 16_384;

/// A place in a text: a line from 1, and a column from 0, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    line: usize,
    column: usize,
}

#[derive(Debug)]
pub(crate) struct Source {
    text: String,
    /// The offset of each line's first byte.
    lines: Vec<usize>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let after_newline = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text: text.to_owned(), lines: [0].into_iter().chain(after_newline).collect() }
    }

    /// The place of a byte; none if a character does not begin there.
    pub(crate) fn location(&self, offset: usize) -> Option<Location> {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = *self.lines.get(line.checked_sub(1)?)?;
        Some(Location { line, column: self.text.get(start..offset)?.chars().count() })
    }

    fn snippet(&self, line: usize) -> Option<&str> {
        let start = *self.lines.get(line.checked_sub(1)?)?;
        let end = self.lines.get(line).map_or(self.text.len(), |next| next - 1);
        (!self.text.is_empty()).then(|| self.text.get(start..end))?
    }
}

/// The errors of one expression, each with the offset of the byte that it is about.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    reported: Vec<(usize, String)>,
    more: usize,
    bytes: usize,
}

impl Errors {
    pub(crate) fn is_empty(&self) -> bool {
        self.reported.is_empty()
    }

    pub(crate) fn report(&mut self, at: usize, message: impl FnOnce() -> String) {
        if self.reported.len() == MAX_ERRORS {
            self.more += 1;
        } else if self.bytes <= MAX_BYTES {
            let message = message();
            self.bytes += message.len();
            self.reported.push((at, message));
        }
    }

    /// Upstream: `ToDisplayString`.
    pub(crate) fn display(mut self, source: &Source) -> Result<String, Undecided> {
        if self.bytes > MAX_BYTES {
            return Err(Undecided::TooCostly);
        }
        self.reported.sort_by_key(|(at, _)| *at);
        let mut lines = Vec::with_capacity(self.reported.len());
        for (at, message) in &self.reported {
            lines.push(display(source, source.location(*at).ok_or(Undecided::Syntax)?, message));
        }
        if self.more > 0 {
            lines.push(format!("{} more errors were truncated", self.more));
        }
        Ok(lines.join("\n"))
    }
}

fn display(source: &Source, Location { line, column }: Location, message: &str) -> String {
    let mut text = format!("ERROR: <input>:{line}:{}: {message}", column + 1);
    let Some(snippet) = source.snippet(line).filter(|snippet| snippet.len() <= MAX_SNIPPET) else { return text };
    let snippet = snippet.replace('\t', " ");
    let mut characters = snippet.chars();
    // A wide mark below each character of more than one byte.
    let dots: String =
        characters.by_ref().take(column).map(|c| if c.len_utf8() > 1 { '\u{ff0e}' } else { '.' }).collect();
    let mark = if characters.next().is_some_and(|c| c.len_utf8() > 1) { '\u{ff3e}' } else { '^' };
    let _ = write!(text, "\n | {snippet}\n | {dots}{mark}");
    text
}
