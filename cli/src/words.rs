//! Durations, numbers and lists in words.

use jiff::Timestamp;
use shared::api::names::edits;

/// Names of a list that are shown.
const NAMES: usize = 3;

/// `12 s`, `4 min`, `3 h`, `2 days`.
pub fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{} s", seconds.max(0)),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        172_800.. => format!("{} days", seconds / 86_400),
    }
}

/// `12 s ago`, or `in 12 s`.
pub fn when(time: Timestamp, now: Timestamp) -> String {
    let seconds = time.as_second() - now.as_second();
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("in {}", span(seconds)),
        _ => format!("{} ago", span(-seconds)),
    }
}

pub fn lasting(since: Timestamp, now: Timestamp) -> String {
    format!("for {}", span(now.as_second() - since.as_second()))
}

/// `1 pod`, `2 pods`.
pub fn many(count: i64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `a`, `a and b`, `a, b, c and 4 more`.
pub fn list<T: AsRef<str>>(items: &[T]) -> String {
    let named = || items.iter().map(AsRef::as_ref);
    match items {
        [] => "nothing".to_owned(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] if items.len() <= NAMES => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
        _ => format!("{} and {} more", named().take(NAMES).collect::<Vec<_>>().join(", "), items.len() - NAMES),
    }
}

/// The first line without its period, at most 240 characters.
pub fn line(text: &str) -> String {
    const CHARS_MAX: usize = 240;
    let line = text.trim().lines().next().unwrap_or_default().trim_end_matches('.');
    if line.chars().count() <= CHARS_MAX {
        return line.to_owned();
    }
    line.chars().take(CHARS_MAX).chain(['…']).collect()
}

/// The most similar names, best first.
pub fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a str>, max: usize) -> Vec<String> {
    let limit = name.chars().count() / 3 + 1;
    let mut near: Vec<(usize, &str)> = among.map(|other| (edits(name, other), other)).collect();
    near.retain(|(edits, _)| *edits <= limit);
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(max).map(|(_, name)| name.to_owned()).collect()
}

/// Why the apiserver did not do it.
pub(crate) fn why_not(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return if status.code == 403 { "permission denied".to_owned() } else { status.message.clone() };
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_coarse_as_they_are_long() {
        let said = [5, 119, 120, 7_200, 172_800, -3].map(span);
        assert_eq!(said, ["5 s", "119 s", "2 min", "2 h", "2 days", "0 s"]);
        let now = Timestamp::from_second(100).unwrap();
        let at = |second| when(Timestamp::from_second(second).unwrap(), now);
        assert_eq!([at(100), at(112), at(88)], ["now", "in 12 s", "12 s ago"]);
    }

    #[test]
    fn long_lists_are_counted() {
        assert_eq!(list::<&str>(&[]), "nothing");
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(list(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }

    #[test]
    fn a_slip_of_the_finger_has_a_neighbour() {
        let names = || ["web", "wep", "api", "webshop"].into_iter();
        assert_eq!(nearest("wbe", names(), 2), ["web", "wep"]);
        assert_eq!(nearest("database", names(), 2), Vec::<String>::new());
    }

    #[test]
    fn one_line_is_enough() {
        assert_eq!(line(" a b.\nc"), "a b");
        assert_eq!(line(&"x".repeat(300)).chars().count(), 241);
    }
}
