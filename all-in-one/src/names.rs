//! Which name somebody meant.

/// The name that is nearest, if one is near: upstream's names of the controllers and the bare ones are meant as well.
pub(crate) fn near<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let asked = stem(asked);
    let distances = names.map(|name| (distance(asked, stem(name)), name));
    // A third of the letters wrong is another word.
    distances.min().filter(|(distance, _)| distance * 3 <= asked.chars().count()).map(|(_, name)| name)
}

/// Without its last word if that is meant to say that it is an operator or a controller.
fn stem(name: &str) -> &str {
    let is_meant = |word: &str| ["operator", "controller"].iter().any(|known| distance(word, known) <= 2);
    name.rsplit_once('-').filter(|(_, last)| is_meant(last)).map_or(name, |(stem, _)| stem)
}

/// How many letters have to be put in, taken out or replaced to make `b` of `a` (Levenshtein's distance).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        for (a, b, expected) in
            [("", "", 0), ("job", "", 3), ("", "job", 3), ("job", "jobs", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_name_is_meant_if_it_is_near() {
        let names = ["cronjob-operator", "job-operator", "replicaset-operator", "statefulset-operator"];
        for (asked, meant) in [
            ("job", Some("job-operator")),
            ("cron-job-operator", Some("cronjob-operator")),
            ("replicasets-controller", Some("replicaset-operator")),
            ("job-operater", Some("job-operator")),
            ("stateful-set-contoller", Some("statefulset-operator")),
            ("node-operator", None),
            ("", None),
        ] {
            assert_eq!(near(asked, names.into_iter()), meant, "{asked}");
        }
    }
}
