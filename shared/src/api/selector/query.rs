//! Label selectors as lists and watches take them in their query.
//!
//! Left out: sets (`a in (b,c)`), which no informer here asks for. Upstream: `Parse`,
//! staging/src/k8s.io/apimachinery/pkg/labels/selector.go.

use crate::api::labels::Labels;

/// Whether an object of these labels is among those that `selector` (`a=b,c!=d,e,!f`) asks for.
pub fn matches(selector: &str, labels: &Labels) -> bool {
    selector.split(',').filter(|part| !part.is_empty()).all(|part| meets(part, labels))
}

fn meets(requirement: &str, labels: &Labels) -> bool {
    if let Some((key, value)) = requirement.split_once("!=") {
        labels.get(key) != Some(value)
    } else if let Some((key, value)) = requirement.split_once('=') {
        labels.get(key) == Some(value.trim_start_matches('='))
    } else if let Some(key) = requirement.strip_prefix('!') {
        labels.get(key).is_none()
    } else {
        labels.get(requirement).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_asks_for_what_the_server_would_give() {
        let labels = Labels::new([("app", "web"), ("empty", "")]);
        for (selector, expected) in [
            ("", true),
            ("app", true),
            ("empty", true),
            ("!app", false),
            ("tier", false),
            ("!tier", true),
            ("app=web", true),
            ("app==web", true),
            ("app=db", false),
            ("app!=db", true),
            ("app!=web", false),
            ("tier!=db", true),
            ("app=web,!tier", true),
            ("app=web,tier", false),
        ] {
            assert_eq!(matches(selector, &labels), expected, "{selector}");
        }
    }
}
