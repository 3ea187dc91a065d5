//! Differences that an operator makes on purpose and that show at rest, by the sentence of its page that says so.

use facts::KnownDifference;
use shared::api::explain::{Difference, ShadowReport};

/// The sentence of the operator's page that this difference is, if there is one.
pub(super) fn documented(operator: &str, difference: &Difference) -> Option<&'static str> {
    let Difference { resource, stages, fields, .. } = difference;
    let is_it = |known: &&KnownDifference| {
        let within = |path: &str| known.paths.iter().any(|known| path.starts_with(known));
        known.resource == resource.as_str()
            && fields.is_empty() == known.paths.is_empty()
            && fields.iter().all(|field| within(&field.path))
            && stages.iter().any(|stage| stage.text.contains(known.decided))
    };
    facts::of(operator)?.differences.iter().find(is_it).map(|known| known.sentence)
}

/// The sentences that fit differences of a report, each once.
pub(super) fn of_report(report: &ShadowReport) -> Vec<&'static str> {
    let mut found: Vec<_> =
        report.differences.iter().filter_map(|difference| documented(&report.operator, difference)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use shared::api::explain::{FieldDifference, Stage};

    use super::*;

    fn difference(resource: &str, decided: &str, paths: &[&str]) -> Difference {
        let field = |path: &&str| FieldDifference { path: (*path).to_owned(), has: Value::Null, wants: Value::Null };
        Difference {
            queue: String::new(),
            key: String::new(),
            verb: "patch".to_owned(),
            resource: resource.to_owned(),
            object: String::new(),
            stages: vec![Stage { text: decided.to_owned(), reason: Value::Null }],
            fields: paths.iter().map(field).collect(),
            since: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_difference_is_known_by_its_fields_and_its_decision() {
        let deployment = facts::of("deployment-operator").unwrap().differences[0];
        let (known, other) = (deployment.paths[0], "spec.replicas");
        let check = |operator, decided, paths: &[&str], expected: bool| {
            let found = documented(operator, &difference("replicasets.apps", decided, paths));
            assert_eq!(found, expected.then_some(deployment.sentence), "{operator} {decided} {paths:?}");
        };
        check("deployment-operator", "scaling; scale web-1 to 2", &[known], true);
        check("deployment-operator", "scaling; scale web-1 to 2", &[known, other], false);
        check("deployment-operator", "rolling update", &[known], false);
        check("deployment-operator", "scaling", &[], false);
        check("job-operator", "scaling", &[known], false);
    }

    #[test]
    fn a_deletion_is_known_by_its_decision_alone() {
        let operator = "certificatesigningrequest-cleaner-operator";
        let deletion = facts::of(operator).unwrap().differences[0];
        let check = |decided, paths: &[&str], expected: bool| {
            let found = documented(operator, &difference(deletion.resource, decided, paths));
            assert_eq!(found, expected.then_some(deletion.sentence), "{decided} {paths:?}");
        };
        check("delete (denied; kept until 2026-01-01T12:00:00Z)", &[], true);
        check("delete (denied; kept until 2026-01-01T12:00:00Z)", &["metadata.labels[a]"], false);
        check("keep (being deleted)", &[], false);
    }

    #[test]
    fn each_sentence_stands_on_its_operators_page() {
        for facts in facts::ALL {
            let operator = facts.names.operator;
            let page = format!("{}/../operators/{operator}/README.md", env!("CARGO_MANIFEST_DIR"));
            let page = std::fs::read_to_string(page).unwrap();
            let differences = page.split_once("\n## Differences from upstream\n").unwrap().1;
            for KnownDifference { sentence, .. } in facts.differences {
                assert!(differences.contains(sentence), "{operator}: {sentence}");
            }
        }
    }
}
