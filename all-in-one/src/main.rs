//! All operators in one program: `operators deployment-operator --leader-elect=false`, or a link of the operator's name.
//!
//! With an operator's name the process runs that one, and operators on one node share the pages of the program. With flags
//! alone, kube-controller-manager's, it runs all of them: a controller in each thread.

mod command_line;
mod names;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use shared::process::flags::Exit;
use shared::process::run::several::{self, Entry};

/// One operator of this program.
struct Operator {
    name: &'static str,
    /// Its description, in a line.
    about: &'static str,
    main: fn() -> ExitCode,
    /// Adds the flags that it alone has.
    flags: fn(clap::Command) -> clap::Command,
    /// It as one of several in a process.
    entry: Entry,
}

/// What the process runs.
enum Choice {
    One(&'static Operator),
    /// Several, as the flags say.
    Several,
}

include!(concat!(env!("OUT_DIR"), "/operators.rs"));

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let several = match choose(&args) {
        Ok(Choice::One(operator)) => return (operator.main)(),
        Ok(Choice::Several) => command_line::parse(args, OPERATORS),
        Err(exit) => Err(exit),
    };
    match several {
        Ok(several) => several::main(several),
        Err(exit) => exit.print(),
    }
}

/// The operator that the program is called by, or that its first argument names; several where that is a flag, or where
/// there is none.
fn choose(args: &[OsString]) -> Result<Choice, Exit> {
    let called = |name: &str| OPERATORS.iter().find(|operator| operator.name == name).map(Choice::One);
    let program = args.first().and_then(|path| Path::new(path).file_name()).unwrap_or_default();
    if let Some(operator) = called(&program.to_string_lossy()) {
        return Ok(operator);
    }
    match args.get(1).map(|name| name.to_string_lossy()).as_deref() {
        None => Ok(Choice::Several),
        Some("help") => Err(Exit { text: list(), asked_for: true }),
        Some(flag) if flag.starts_with('-') => Ok(Choice::Several),
        Some(name) => called(name).ok_or_else(|| unknown(name)),
    }
}

fn list() -> String {
    let width = OPERATORS.iter().map(|operator| operator.name.len()).max().unwrap_or_default();
    let rows = OPERATORS.iter().map(|Operator { name, about, .. }| format!("  {name:width$}  {about}\n"));
    let usage = "Usage: operators OPERATOR [FLAGS]\n       operators [FLAGS]    all in one process (--help)";
    format!("{usage}\n\nOperators:\n{}", rows.collect::<String>())
}

fn unknown(name: &str) -> Exit {
    let hint = names::hint(name, OPERATORS.iter().map(|operator| operator.name));
    Exit::of_errors(&[format!("there is no operator {name:?}{hint} (operators help lists them all)")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(args: &[&str]) -> Result<&'static str, Exit> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        choose(&args).map(|choice| match choice {
            Choice::One(operator) => operator.name,
            Choice::Several => "several",
        })
    }

    #[test]
    fn an_operator_is_chosen_by_the_programs_name_or_the_first_argument() {
        for Operator { name, .. } in OPERATORS {
            assert_eq!(chosen(&["operators", name]), Ok(*name));
            assert_eq!(chosen(&[&format!("/usr/bin/{name}"), "--v=2"]), Ok(*name));
        }
    }

    #[test]
    fn flags_without_a_name_run_all_in_one_process() {
        for args in [&["operators"][..], &["operators", "--v=4"], &["/kube-controller-manager", "--controllers=*"]] {
            assert_eq!(chosen(args), Ok("several"), "{args:?}");
        }
    }

    #[test]
    fn every_operator_is_an_entry_of_its_own() {
        for Operator { name, entry, .. } in OPERATORS {
            assert_eq!(entry.names.operator, *name);
        }
    }

    #[test]
    fn every_folder_is_an_operator_of_the_program() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../operators")).unwrap();
        let mut folders: Vec<String> =
            folders_only(folder).map(|entry| entry.file_name().into_string().unwrap()).collect();
        folders.sort();
        assert_eq!(OPERATORS.iter().map(|operator| operator.name).collect::<Vec<_>>(), folders);
    }

    fn folders_only(entries: std::fs::ReadDir) -> impl Iterator<Item = std::fs::DirEntry> {
        entries.map(Result::unwrap).filter(|entry| entry.file_type().unwrap().is_dir())
    }

    #[test]
    fn help_lists_all_with_what_they_do() {
        let Err(exit) = chosen(&["operators", "help"]) else { panic!("one was chosen") };
        assert!(exit.asked_for, "{exit:?}");
        assert!(exit.text.contains("  deployment-operator "), "{}", exit.text);
        assert!(exit.text.contains("Rolls a Deployment's pods"), "{}", exit.text);
    }

    #[test]
    fn a_misspelt_name_says_which_is_near() {
        let says = |name: &str| chosen(&["operators", name]).unwrap_err().text;
        assert_eq!(
            says("deploymnet-operator"),
            "error: there is no operator \"deploymnet-operator\", did you mean deployment-operator? \
             (operators help lists them all)\n"
        );
        assert!(says("job-controller").contains("did you mean job-operator?"));
        assert!(says("job-operater").contains("did you mean job-operator?"));
    }
}
