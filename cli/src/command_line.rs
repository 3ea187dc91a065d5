//! Flags on the command line of a Go program.

use std::collections::BTreeMap;

pub(crate) type Flags = BTreeMap<String, String>;

/// Parses `--flag=value`, `--flag value` and `--flag`.
pub(crate) fn parse<T: AsRef<str>>(words: &[T]) -> Flags {
    // A list may begin with a disabled entry, such as `-job-controller,*`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &str) -> Flags {
        parse(&words.split(' ').collect::<Vec<_>>())
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
}
