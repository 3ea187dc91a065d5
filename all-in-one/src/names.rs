//! Which name somebody meant.

use shared::api::names::edits;

/// `, did you mean X?` for an unknown name; `""` if none of the names is near.
pub(crate) fn hint<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> String {
    near(asked, names).map_or_else(String::new, |near| format!(", did you mean {near}?"))
}

/// The name that is nearest, if one is near: upstream's names of the controllers and the bare ones are meant as well.
fn near<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let asked = stem(asked);
    let edited = names.map(|name| (edits(asked, stem(name)), name));
    // A third of the letters wrong is another word.
    edited.min().filter(|(edits, _)| edits * 3 <= asked.chars().count()).map(|(_, name)| name)
}

/// Without its last word if that is meant to say that it is an operator or a controller.
fn stem(name: &str) -> &str {
    let is_meant = |word: &str| ["operator", "controller"].iter().any(|known| edits(word, known) <= 2);
    name.rsplit_once('-').filter(|(_, last)| is_meant(last)).map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

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
