use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::explain::{Difference, FieldDifference, ShadowReport, Stage};

use super::*;

fn report(differences: Vec<Difference>, more_differences: u64) -> ShadowReport {
    ShadowReport {
        operator: "deployment-operator".to_owned(),
        version: "v0".to_owned(),
        time: Timestamp::UNIX_EPOCH,
        complete: true,
        looked_at: BTreeMap::from([("deployment".to_owned(), 1_204)]),
        moving: 0,
        differences,
        more_differences,
    }
}

fn difference() -> Difference {
    let path = "status.replicas".to_owned();
    Difference {
        queue: "deployment".to_owned(),
        key: "team/web".to_owned(),
        verb: "patch".to_owned(),
        resource: "deployments.apps/status".to_owned(),
        object: "team/web".to_owned(),
        stages: vec![Stage { text: "no change".to_owned(), reason: Value::Null }],
        fields: vec![FieldDifference { path, has: json!(1), wants: Value::Null }],
        since: Timestamp::UNIX_EPOCH,
    }
}

fn answered(answer: Answer, report: Option<ShadowReport>, checks: Vec<Check>) -> Preflight {
    let failure = if matches!(answer, Answer::Unfinished | Answer::Failed) { "time was up" } else { "" };
    let (operator, failure) = ("deployment-operator".to_owned(), failure.to_owned());
    let operators = vec![Inspected { operator, answer, report, documented: Vec::new(), failure, checks }];
    Preflight { time: Timestamp::UNIX_EPOCH, checks: Vec::new(), operators }
}

#[test]
fn the_first_line_says_what_a_takeover_would_do() {
    let row = |answer, report, expected: &[&str]| {
        let text = answered(answer, report, Vec::new()).to_string();
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    };
    row(
        Answer::Nothing,
        Some(report(Vec::new(), 0)),
        &["deployment-operator: 1,204 Deployments looked at: a takeover would write nothing"],
    );
    row(
        Answer::Differences,
        Some(report(vec![difference()], 0)),
        &[
            "deployment-operator: 1,204 Deployments looked at: a takeover would make 1 write",
            "  patch deployments.apps/status team/web",
            "    status.replicas: 1 -> nothing",
            "    decided: no change",
        ],
    );
    row(
        Answer::Unfinished,
        Some(report(vec![difference()], 2)),
        &[
            "deployment-operator: incomplete, 3 writes so far: time was up",
            "  patch deployments.apps/status team/web",
            "    status.replicas: 1 -> nothing",
            "    decided: no change",
            "  … and 2 more",
        ],
    );
    row(Answer::Failed, None, &["deployment-operator: no answer: time was up"]);
}

#[test]
fn keys_that_are_no_objects_are_counted_by_queue() {
    let mut report = report(Vec::new(), 0);
    report.looked_at.insert("other".to_owned(), 7);
    let text = answered(Answer::Nothing, Some(report.clone()), Vec::new()).to_string();
    assert!(text.contains(": 1,204 Deployments, 7 in queue other looked at"), "{text}");
    report.looked_at = BTreeMap::from([("deployment".to_owned(), 1)]);
    let text = answered(Answer::Nothing, Some(report.clone()), Vec::new()).to_string();
    assert!(text.contains(": 1 Deployment looked at"), "{text}");
    let (publisher, published) = (
        "kube-apiserver-serving-clustertrustbundle-publisher-operator",
        ": 3 in queue ca_cert_publisher_cluster_trust_bundles looked at",
    );
    let (cleaner, cleaned) =
        ("legacy-serviceaccount-token-cleaner-operator", ": 3 in queue legacy_service_account_token_cleaner looked at");
    for (operator, expected) in [
        ("certificatesigningrequest-approving-operator", ": 3 CertificateSigningRequests looked at"),
        ("clusterrole-aggregation-operator", ": 3 ClusterRoles looked at"),
        (publisher, published),
        (cleaner, cleaned),
        ("root-ca-certificate-publisher-operator", ": 3 Namespaces looked at"),
        ("service-cidr-operator", ": 3 ServiceCIDRs looked at"),
        ("serviceaccount-operator", ": 3 Namespaces looked at"),
        ("serviceaccount-token-operator", ": 3 Secrets looked at"),
        ("ttl-operator", ": 3 Nodes looked at"),
    ] {
        let mut report = ShadowReport { operator: operator.to_owned(), ..report.clone() };
        report.looked_at = BTreeMap::from([(facts::of(operator).unwrap().queues[0].name.to_owned(), 3)]);
        let text = answered(Answer::Nothing, Some(report), Vec::new()).to_string();
        assert!(text.contains(expected), "{operator}: {text}");
    }
}

#[test]
fn the_outcome_is_the_worst_that_was_found() {
    let check = |level| vec![Check::new("role", level, "text")];
    let row = |answer, level, expected| {
        assert_eq!(answered(answer, None, check(level)).outcome(), expected, "{answer:?} {level:?}");
    };
    row(Answer::Nothing, Level::Fine, Outcome::Clear);
    row(Answer::Nothing, Level::Warning, Outcome::Clear);
    row(Answer::Nothing, Level::Unknown, Outcome::Clear);
    row(Answer::Nothing, Level::Problem, Outcome::NotClear);
    row(Answer::Differences, Level::Fine, Outcome::NotClear);
    row(Answer::Failed, Level::Problem, Outcome::Unanswered);
    row(Answer::Unfinished, Level::Fine, Outcome::Unanswered);
    let mut cluster = answered(Answer::Nothing, None, Vec::new());
    cluster.checks = check(Level::Problem);
    assert_eq!(cluster.outcome(), Outcome::NotClear);
}

#[test]
fn what_is_wrong_comes_first_and_what_is_fine_is_counted() {
    let levels = [Level::Fine, Level::Warning, Level::Problem, Level::Fine, Level::Unknown];
    let checks = levels.map(|level| Check::new("role", level, format!("{level:?}"))).to_vec();
    let text = answered(Answer::Nothing, Some(report(Vec::new(), 0)), checks).to_string();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        ["  PROBLEM: role: Problem", "  note: role: Warning", "  unknown: role: Unknown", "  2 other checks passed"]
    );
}
