//! All operators in one program: `operators deployment-operator --leader-elect=false`, or a link of the operator's name.
//!
//! Each process runs one operator, with its own identity and Lease; operators on one node share the pages of the
//! program. Flags without an operator's name are those of kube-controller-manager, and are checked.
//! Left out: several operators in one process.

mod command_line;
mod names;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use shared::process::flags::Exit;

/// One operator of this program.
struct Operator {
    name: &'static str,
    /// Its description, in a line.
    about: &'static str,
    main: fn() -> ExitCode,
    /// Adds the flags that it alone has.
    flags: fn(clap::Command) -> clap::Command,
}

include!(concat!(env!("OUT_DIR"), "/operators.rs"));

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    match choose(&args) {
        Ok(Some(operator)) => (operator.main)(),
        Ok(None) => all(args).print(),
        Err(exit) => exit.print(),
    }
}

/// The operator that the program is called by, or that its first argument names; none if flags are the first.
fn choose(args: &[OsString]) -> Result<Option<&'static Operator>, Exit> {
    let called = |name: &str| OPERATORS.iter().find(|operator| operator.name == name);
    let program = args.first().and_then(|path| Path::new(path).file_name()).unwrap_or_default();
    if let Some(operator) = called(&program.to_string_lossy()) {
        return Ok(Some(operator));
    }
    match args.get(1).map(|name| name.to_string_lossy()).as_deref() {
        None | Some("help") => Err(Exit { text: list(), asked_for: true }),
        Some(name) if name.starts_with('-') => Ok(None),
        Some(name) => called(name).map(Some).ok_or_else(|| unknown(name)),
    }
}

/// Says what the flags of kube-controller-manager ask for.
fn all(args: Vec<OsString>) -> Exit {
    match command_line::parse(args, OPERATORS) {
        Ok(configuration) => {
            Exit::of_errors(&[format!("{} controllers cannot run in one process yet", configuration.controllers.len())])
        }
        Err(exit) => exit,
    }
}

fn list() -> String {
    let width = OPERATORS.iter().map(|operator| operator.name.len()).max().unwrap_or_default();
    let rows = OPERATORS.iter().map(|Operator { name, about, .. }| format!("  {name:width$}  {about}\n"));
    let usage = "Usage: operators OPERATOR [FLAGS]\n       operators --help";
    format!("{usage}\n\nOperators:\n{}", rows.collect::<String>())
}

fn unknown(name: &str) -> Exit {
    let near = names::near(name, OPERATORS.iter().map(|operator| operator.name));
    let near = near.map_or_else(String::new, |near| format!(", did you mean {near}?"));
    Exit::of_errors(&[format!("there is no operator {name:?}{near} (operators lists them all)")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(args: &[&str]) -> Result<&'static str, Exit> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        choose(&args).map(|operator| operator.map_or("all", |operator| operator.name))
    }

    #[test]
    fn an_operator_is_chosen_by_the_programs_name_or_the_first_argument() {
        for Operator { name, .. } in OPERATORS {
            assert_eq!(chosen(&["operators", name]), Ok(*name));
            assert_eq!(chosen(&[&format!("/usr/bin/{name}"), "--v=2"]), Ok(*name));
        }
        assert_eq!(chosen(&["operators", "--v=4"]), Ok("all"));
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
    fn without_a_name_all_are_listed_with_what_they_do() {
        let Err(exit) = chosen(&["operators"]) else { panic!("one was chosen") };
        assert!(exit.asked_for, "{exit:?}");
        assert!(exit.text.contains("  deployment-operator "), "{}", exit.text);
        assert!(exit.text.contains("Rolls a Deployment's pods"), "{}", exit.text);
        assert_eq!(chosen(&["operators", "help"]), Err(exit));
    }

    #[test]
    fn a_misspelt_name_says_which_is_near() {
        let says = |name: &str| chosen(&["operators", name]).unwrap_err().text;
        assert_eq!(
            says("deploymnet-operator"),
            "error: there is no operator \"deploymnet-operator\", did you mean deployment-operator? \
             (operators lists them all)\n"
        );
        assert!(says("job-controller").contains("did you mean job-operator?"));
        assert!(says("job-operater").contains("did you mean job-operator?"));
    }
}
