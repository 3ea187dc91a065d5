//! Finds the flag that a misspelt one was meant to be.
//!
//! Left out: clap's own suggestions, which bring a crate into every binary and know nothing of Go's single dash.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The flag that is spelt most like the unknown one of these arguments, if any is spelt nearly so.
pub(super) fn of(error: &clap::Error, command: &Command, args: &[String]) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    // Of `-leader-elect`, clap reads and names `-l` only.
    let written = args.iter().find(|arg| arg.starts_with(unknown.as_str())).unwrap_or(unknown);
    let name = written.strip_prefix("--").or_else(|| written.strip_prefix('-'))?;
    let name = name.split('=').next().unwrap_or(name).replace('_', "-").to_lowercase();
    let flags = command.get_arguments().filter_map(clap::Arg::get_long);
    let (edits, nearest) = flags.map(|flag| (edits(&name, flag), flag)).min()?;
    (edits <= name.len() / 3).then(|| nearest.to_owned())
}

/// How many characters must be put in, left out or replaced to make one of the other: the distance of Levenshtein.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // How far the part of `from` that was read is from each beginning of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for read in from.chars() {
        let mut replaced = row[0];
        row[0] += 1;
        for (at, wanted) in to.iter().enumerate() {
            let replace = replaced + usize::from(read != *wanted);
            replaced = row[at + 1];
            row[at + 1] = replace.min(replaced + 1).min(row[at] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "axc", 1),
            ("abc", "ac", 1),
            ("ac", "abc", 1),
            ("kitten", "sitting", 3),
            ("äöü", "aou", 3),
        ] {
            assert_eq!(edits(from, to), expected, "{from} {to}");
        }
    }
}
