//! Finds the flag that a misspelt one was meant to be.
//!
//! Left out: clap's own suggestions, which bring a crate into every binary and know nothing of Go's single dash.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::api::names::edits;

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
