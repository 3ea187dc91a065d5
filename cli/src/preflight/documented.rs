//! Differences that an operator makes on purpose and that show at rest, by the sentence of its page that says so.
//!
//! Left out: those that leave the same objects, which no shadow shows: the pages say which these are. So are those
//! whose writes look like a fault's: an endpoint too many, or another time to live of a Node.

use shared::api::explain::{Difference, ShadowReport};

/// How a documented difference looks as a write.
struct Documented {
    operator: &'static str,
    resource: &'static str,
    /// Where the object may differ; elsewhere it is another difference. None for a deletion, which differs nowhere.
    paths: &'static [&'static str],
    /// A part of the decision's text.
    decided: &'static str,
    /// The sentence of the operator's page.
    sentence: &'static str,
}

const ALL: &[Documented] = &[
    Documented {
        operator: "bootstrap-signer-operator",
        resource: "configmaps",
        paths: &["data.jws-kubeconfig-"],
        decided: "signs nothing: expired",
        sentence: "A signature is removed when its token expires.",
    },
    Documented {
        operator: "cronjob-operator",
        resource: "cronjobs.batch/status",
        paths: &["status.active"],
        decided: " is missing; ",
        sentence: "An active Job whose name now belongs to another Job leaves the status.",
    },
    Documented {
        operator: "deployment-operator",
        resource: "replicasets.apps",
        paths: &[
            "metadata.annotations[deployment.kubernetes.io/desired-replicas]",
            "metadata.annotations[deployment.kubernetes.io/max-replicas]",
        ],
        decided: "scaling",
        sentence: "A Deployment whose only active ReplicaSet has the new size by chance notes that size on it.",
    },
    Documented {
        operator: "clusterrole-aggregation-operator",
        resource: "clusterroles.rbac.authorization.k8s.io",
        paths: &["rules"],
        decided: "apply 0 rules",
        sentence: "Where the selected roles have no rules, an empty list is applied, and replaces rules that somebody else \
                   has written.",
    },
    Documented {
        operator: "certificatesigningrequest-cleaner-operator",
        resource: "certificatesigningrequests.certificates.k8s.io",
        paths: &[],
        decided: "delete (",
        sentence: "A request goes when its time is over; upstream looks each hour, so that it stays for up to an hour \
                   longer.",
    },
    Documented {
        operator: "horizontal-pod-autoscaler-operator",
        resource: "horizontalpodautoscalers.autoscaling/status",
        paths: &["status.conditions", "status.currentMetrics"],
        decided: "the metrics are too old: ",
        sentence: "A value that is too old counts as missing, and one of an object or from outside fails.",
    },
    Documented {
        operator: "podcertificaterequest-cleaner-operator",
        resource: "podcertificaterequests.certificates.k8s.io",
        paths: &[],
        decided: "delete (",
        sentence: "A request goes when it is 15 minutes old; upstream looks every five minutes, so that it stays for up \
                   to five minutes longer.",
    },
    Documented {
        operator: "statefulset-operator",
        resource: "pods/eviction",
        paths: &[],
        decided: "evict ",
        sentence: "A pod of an earlier revision that was never ready is evicted where its StatefulSet has the annotation \
                   `statefulset.operators.local/replace-stuck-pods: \"true\"`.",
    },
];

/// The sentence of the operator's page that this difference is, if there is one.
pub(super) fn documented(operator: &str, difference: &Difference) -> Option<&'static str> {
    let Difference { resource, stages, fields, .. } = difference;
    let is_it = |known: &&Documented| {
        let within = |path: &str| known.paths.iter().any(|known| path.starts_with(known));
        (known.operator, known.resource) == (operator, resource.as_str())
            && fields.is_empty() == known.paths.is_empty()
            && fields.iter().all(|field| within(&field.path))
            && stages.iter().any(|stage| stage.text.contains(known.decided))
    };
    ALL.iter().find(is_it).map(|known| known.sentence)
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
        let deployment = ALL.iter().find(|known| known.operator == "deployment-operator").unwrap();
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
        let deletion = ALL.iter().find(|known| known.paths.is_empty()).unwrap();
        let check = |decided, paths: &[&str], expected: bool| {
            let found = documented(deletion.operator, &difference(deletion.resource, decided, paths));
            assert_eq!(found, expected.then_some(deletion.sentence), "{decided} {paths:?}");
        };
        check("delete (denied, which could last until 2026-01-01T12:00:00Z)", &[], true);
        check("delete (denied, which could last until 2026-01-01T12:00:00Z)", &["metadata.labels[a]"], false);
        check("keep (being deleted)", &[], false);
    }

    #[test]
    fn each_sentence_stands_on_its_operators_page() {
        for Documented { operator, sentence, .. } in ALL {
            let page = format!("{}/../operators/{operator}/README.md", env!("CARGO_MANIFEST_DIR"));
            let page = std::fs::read_to_string(page).unwrap();
            let differences = page.split_once("\n## Differences from upstream\n").unwrap().1;
            assert!(differences.contains(sentence), "{operator}: {sentence}");
        }
    }
}
