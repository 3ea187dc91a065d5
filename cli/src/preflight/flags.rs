//! Compares an operator's flags with kube-controller-manager's, except `--concurrent-*`. An operator's own flags
//! precede the shared ones in its help.

use super::report::{Check, Level};
use crate::command_line::Flags;
use crate::words::list;

const SHARED: &str = "--kubeconfig";

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

/// Flags of kube-controller-manager for a shadow on this machine, without those that name files.
pub(super) fn for_shadow(own: &Flags, manager: Option<&Flags>) -> Vec<String> {
    let given =
        manager.into_iter().flatten().filter(|(flag, value)| own.contains_key(*flag) && !value.starts_with('/'));
    given.map(|(flag, value)| format!("--{flag}={value}")).collect()
}

/// None if the command line is not visible.
pub(super) fn check(own: &Flags, manager: Option<&Flags>, operator: Option<&Flags>) -> Vec<Check> {
    const ABOUT: &str = "flags";
    let names: Vec<String> = own.keys().map(|flag| format!("--{flag}")).collect();
    if names.is_empty() {
        return vec![Check::new(ABOUT, Level::Fine, "no flags that must match kube-controller-manager's")];
    }
    let Some(manager) = manager else {
        let text = format!("kube-controller-manager's flags are not visible: {} must match them", list(&names));
        return vec![Check::new(ABOUT, Level::Unknown, text)];
    };
    let mut checks = Vec::new();
    for (flag, default) in own {
        let theirs = manager.get(flag).unwrap_or(default);
        let Some(operator) = operator else {
            if let Some(value) = manager.get(flag) {
                let text = format!("kube-controller-manager has --{flag}={value}: set the same on the operator");
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
        checks.push(Check::new(ABOUT, Level::Fine, format!("{}: same as kube-controller-manager", list(&names))));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse;

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
        parse(&words.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn own_flags_and_their_defaults_are_in_the_help() {
        let own: Vec<String> = of_help(HELP).iter().map(|(flag, default)| format!("{flag}={default}")).collect();
        assert_eq!(own, ["enable-it=true", "max-endpoints-per-slice=100", "root-ca-file="]);
    }

    #[test]
    fn what_does_not_agree_is_named() {
        let row = |manager: Option<&str>, operator: Option<&str>, level: Level, expected: &str| {
            let found = check(&of_help(HELP), manager.map(flags).as_ref(), operator.map(flags).as_ref());
            let [Check { level: found_level, text, .. }] = &found[..] else { panic!("{found:?}") };
            assert_eq!((*found_level, text.as_str()), (level, expected), "{manager:?} {operator:?}");
        };
        let agree = "--enable-it, --max-endpoints-per-slice and --root-ca-file";
        let fine = &format!("{agree}: same as kube-controller-manager");
        row(Some("kcm"), Some("op --concurrent-a-syncs=9"), Level::Fine, fine);
        row(Some("kcm --max-endpoints-per-slice=100"), Some("op"), Level::Fine, fine);
        row(Some("kcm"), None, Level::Fine, fine);
        let hidden = &format!("kube-controller-manager's flags are not visible: {agree} must match them");
        row(None, Some("op"), Level::Unknown, hidden);
        let differs = "kube-controller-manager has --max-endpoints-per-slice=500, the operator 100";
        row(Some("kcm --max-endpoints-per-slice=500"), Some("op"), Level::Problem, differs);
        row(
            Some("kcm"),
            Some("op --enable-it=false"),
            Level::Problem,
            "kube-controller-manager has --enable-it=true, the operator false",
        );
        let give = "kube-controller-manager has --max-endpoints-per-slice=500: set the same on the operator";
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
