//! The program's output: its text, and its exit code.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context, Result};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Well,
    Stuck,
}

pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value).context("cannot write JSON")? + "\n")
}

pub(crate) fn print(text: &str) -> Result<()> {
    write(&printable(text))
}

pub fn report(error: &anyhow::Error) {
    eprintln!("error: {}", printable(&format!("{error:#}")));
}

/// The text without what a terminal obeys: control characters, and those that reverse the direction of a line, become
/// escapes as JSON has them. Events and errors have texts of tenants, which could forge what an administrator sees.
///
/// Upstream: `EscapeTerminal`, `staging/src/k8s.io/cli-runtime/pkg/printers/terminal.go`.
pub(crate) fn printable(text: &str) -> String {
    let is_obeyed = |char: char| {
        let reverses =
            matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        reverses || char.is_control() && !matches!(char, '\n' | '\t')
    };
    let mut printable = String::with_capacity(text.len());
    for char in text.chars() {
        if is_obeyed(char) {
            // All of them fit into four digits.
            let _ = write!(printable, "\\u{:04x}", u32::from(char));
        } else {
            printable.push(char);
        }
    }
    printable
}

/// Write a text that is printable, or has colours around printable parts.
pub(crate) fn write(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("cannot print")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        for (text, expected) in [
            ("pod/web: müde\n\tnext", "pod/web: müde\n\tnext"),
            ("\x1b]52;c;aGk=\x07", "\\u001b]52;c;aGk=\\u0007"),
            ("all is well\r", "all is well\\u000d"),
            ("\u{9b}2J\x7f", "\\u009b2J\\u007f"),
            ("\u{202e}llew", "\\u202ellew"),
        ] {
            assert_eq!(printable(text), expected);
        }
        let foreign = "\x1b \u{9b} \u{2066} \"";
        let read: String = serde_json::from_str(&printable(&json(&foreign).unwrap())).unwrap();
        assert_eq!(read, foreign, "JSON means the same");
    }
}
