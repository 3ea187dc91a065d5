//! Which flags of an operator have to agree with kube-controller-manager's, and whether they do.
//!
//! Pure. An operator's own flags are those that its help lists before the ones that all operators share. Left out: how
//! many syncs run at a time, which is each process's own.

use std::collections::BTreeMap;

use super::{Check, Level};
use crate::words::list;

/// Flags and their values.
pub(crate) type Flags = BTreeMap<String, String>;

/// The first flag that all operators share.
const SHARED: &str = "--kubeconfig";

/// The operator's own flags, with their defaults, from its `--help`.
pub(super) fn of_help(help: &str) -> Flags {
    let mut flags = Flags::new();
    let mut last = String::new();
    for line in help.lines().map(str::trim) {
        if line.starts_with(SHARED) {
            break;
        }
        if let Some(flag) = line.strip_prefix("--") {
            flag.split([' ', '[', '=']).next().unwrap_or_default().clone_into(&mut last);
            flags.insert(last.clone(), String::new());
        } else if let Some((_, default)) = line.rsplit_once("[default: ") {
            flags.insert(last.clone(), default.trim_end_matches(']').to_owned());
        }
    }
    flags.retain(|flag, _| !flag.starts_with("concurrent-"));
    flags
}

/// The flags on a command line: `--flag=value`, `--flag value`, `--flag`.
pub(crate) fn of_words<T: AsRef<str>>(words: &[T]) -> Flags {
    // A list may begin with something that is taken out, such as `-job-controller,*`.
    let is_value = |word: &&str| !word.starts_with('-') || word.contains(',') && !word.contains('=');
    let mut flags = Flags::new();
    let mut words = words.iter().map(AsRef::as_ref).peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        let (flag, value) = match flag.split_once('=') {
            Some((flag, value)) => (flag, value.to_owned()),
            None => (flag, words.next_if(is_value).unwrap_or("true").to_owned()),
        };
        flags.insert(flag.replace('_', "-"), value);
    }
    flags
}

/// The flags of kube-controller-manager that a shadow on another machine gets: files are not there.
pub(super) fn for_shadow(own: &Flags, manager: Option<&Flags>) -> Vec<String> {
    let given =
        manager.into_iter().flatten().filter(|(flag, value)| own.contains_key(*flag) && !value.starts_with('/'));
    given.map(|(flag, value)| format!("--{flag}={value}")).collect()
}

/// Whether the operator, as it is installed, has the values of kube-controller-manager; none where nobody sees them.
pub(super) fn check(own: &Flags, manager: Option<&Flags>, operator: Option<&Flags>) -> Vec<Check> {
    const ABOUT: &str = "flags";
    let names: Vec<String> = own.keys().map(|flag| format!("--{flag}")).collect();
    if names.is_empty() {
        return vec![Check::new(ABOUT, Level::Fine, "it has none that must agree with kube-controller-manager's")];
    }
    let Some(manager) = manager else {
        let text = format!("kube-controller-manager's cannot be seen: {} must agree with them", list(&names));
        return vec![Check::new(ABOUT, Level::Unknown, text)];
    };
    let mut checks = Vec::new();
    for (flag, default) in own {
        let theirs = manager.get(flag).unwrap_or(default);
        let Some(operator) = operator else {
            if let Some(value) = manager.get(flag) {
                let text = format!("kube-controller-manager has --{flag}={value}: give the operator the same");
                checks.push(Check::new(ABOUT, Level::Warning, text));
            }
            continue;
        };
        let ours = operator.get(flag).unwrap_or(default);
        if theirs != ours && theirs.starts_with('/') {
            let text = format!("--{flag} is a file: kube-controller-manager has {theirs:?}, the operator {ours:?}");
            checks.push(Check::new(ABOUT, Level::Unknown, text));
        } else if theirs != ours {
            let text = format!("kube-controller-manager has --{flag}={theirs}, the operator {ours}");
            checks.push(Check::new(ABOUT, Level::Problem, text));
        }
    }
    if checks.is_empty() {
        checks.push(Check::new(ABOUT, Level::Fine, format!("{}: as kube-controller-manager has them", list(&names))));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Does something

Usage: a-operator [OPTIONS]

Options:
      --concurrent-a-syncs <NUMBER>
          How many [default: 5]
      --max-endpoints-per-slice <NUMBER>
          The maximum [default: 100]
      --enable-it[=<BOOL>]
          Whether [default: true]
      --root-ca-file <PATH>
          A file
      --kubeconfig <PATH>
          A file
      --kube-api-qps <NUMBER>
          QPS [default: 0]
";

    fn flags(words: &str) -> Flags {
        of_words(&words.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn own_flags_and_their_defaults_are_in_the_help() {
        let own: Vec<String> = of_help(HELP).iter().map(|(flag, default)| format!("{flag}={default}")).collect();
        assert_eq!(own, ["enable-it=true", "max-endpoints-per-slice=100", "root-ca-file="]);
    }

    #[test]
    fn a_command_line_has_flags_in_all_forms() {
        let read = flags("kube-controller-manager --a=1 --b 2 --c -d --e_f=x=y");
        let read: Vec<String> = read.iter().map(|(flag, value)| format!("{flag}={value}")).collect();
        assert_eq!(read, ["a=1", "b=2", "c=true", "d=true", "e-f=x=y"]);
        let read = flags("kube-controller-manager --controllers -a,* --b --c=-d,e");
        let read: Vec<String> = read.iter().map(|(flag, value)| format!("{flag}={value}")).collect();
        assert_eq!(read, ["b=true", "c=-d,e", "controllers=-a,*"]);
    }

    #[test]
    fn what_does_not_agree_is_named() {
        let row = |manager: Option<&str>, operator: Option<&str>, level: Level, expected: &str| {
            let found = check(&of_help(HELP), manager.map(flags).as_ref(), operator.map(flags).as_ref());
            let [Check { level: found_level, text, .. }] = &found[..] else { panic!("{found:?}") };
            assert_eq!((*found_level, text.as_str()), (level, expected), "{manager:?} {operator:?}");
        };
        let agree = "--enable-it, --max-endpoints-per-slice and --root-ca-file";
        let fine = &format!("{agree}: as kube-controller-manager has them");
        row(Some("kcm"), Some("op --concurrent-a-syncs=9"), Level::Fine, fine);
        row(Some("kcm --max-endpoints-per-slice=100"), Some("op"), Level::Fine, fine);
        row(Some("kcm"), None, Level::Fine, fine);
        let hidden = &format!("kube-controller-manager's cannot be seen: {agree} must agree with them");
        row(None, Some("op"), Level::Unknown, hidden);
        let differs = "kube-controller-manager has --max-endpoints-per-slice=500, the operator 100";
        row(Some("kcm --max-endpoints-per-slice=500"), Some("op"), Level::Problem, differs);
        row(
            Some("kcm"),
            Some("op --enable-it=false"),
            Level::Problem,
            "kube-controller-manager has --enable-it=true, the operator false",
        );
        let give = "kube-controller-manager has --max-endpoints-per-slice=500: give the operator the same";
        row(Some("kcm --max-endpoints-per-slice=500"), None, Level::Warning, give);
        let file = "--root-ca-file is a file: kube-controller-manager has \"/a\", the operator \"\"";
        row(Some("kcm --root-ca-file=/a"), Some("op"), Level::Unknown, file);
    }

    #[test]
    fn a_shadow_is_given_what_is_no_file() {
        let manager = flags("kcm --max-endpoints-per-slice=500 --root-ca-file=/a --other=1 --concurrent-a-syncs=2");
        assert_eq!(for_shadow(&of_help(HELP), Some(&manager)), ["--max-endpoints-per-slice=500"]);
        assert_eq!(for_shadow(&of_help(HELP), None), Vec::<String>::new());
    }
}
