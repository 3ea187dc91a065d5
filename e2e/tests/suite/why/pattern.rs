//! The pattern of a first line, parts of which are not known before: `*` stands for one word or a part of one, `…` for
//! anything.
//!
//! Left out: numbers and times as such. A word that is one is enough.

/// Whether the line is as the pattern says.
pub(super) fn fits(pattern: &str, line: &str) -> bool {
    let mut rest = pattern.chars();
    let first = rest.next();
    let rest = rest.as_str();
    let after = |end: usize| fits(rest, &line[end..]);
    let mut ends = line.char_indices().map(|(at, letter)| (at + letter.len_utf8(), letter));
    match first {
        None => line.is_empty(),
        Some('*') => ends.take_while(|(_, letter)| !letter.is_whitespace()).any(|(end, _)| after(end)),
        Some('…') => after(0) || ends.any(|(end, _)| after(end)),
        Some(letter) => line.strip_prefix(letter).is_some_and(|line| fits(rest, line)),
    }
}

#[test]
fn a_star_is_a_word_and_an_ellipsis_anything() {
    let line = "web: 3 of 20 pods missing: ReplicaSet web-6d4 is refused; next retry in 12 s";
    for pattern in
        [line, "web: 3 of 20 pods missing: ReplicaSet web-* is refused; next retry in * s", "web: …", "…s", "…"]
    {
        assert!(fits(pattern, line), "{pattern}");
    }
    for pattern in ["", "web:", "web-*: …", "web: * pods missing: …", "*", "… s ", "web: 3 of 20 pods missing: *"]
    {
        assert!(!fits(pattern, line), "{pattern}");
    }
    assert!(!fits("a*", "a") && fits("a…", "a") && fits("", ""));
}
