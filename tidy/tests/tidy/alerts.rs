//! Rules on alerts and the dashboard: each alert has its part of the page of runbooks, and every metric is documented.
//! Left out: whether a rule is valid and fires, which promtool and Prometheus show in the e2e suite.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::operators::section;
use crate::tree::{self, read};

const RULES: &str = "manifests/components/prometheus-rules/rules.yaml";
const PAGE: &str = "docs/runbooks.md";
const DASHBOARD: &str = "manifests/components/dashboards/operators.json";
/// Words of expressions that are no metrics of ours, though they have an underscore.
const NO_METRICS: [&str; 3] = ["__rate_interval", "histogram_quantile", "kubernetes_version"];
/// What each part of the page says.
const PARTS: [&str; 3] = ["**Means.** ", "**Look.** ", "**Do.** "];

/// The alerts of these rules, with their annotation of a runbook.
fn alerts(rules: &Value) -> Vec<(&str, &str)> {
    let groups = rules["spec"]["groups"].as_array().into_iter().flatten();
    let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
    rules.map(|rule| (text(&rule["alert"]), text(&rule["annotations"]["runbook"]))).collect()
}

/// The metrics in an expression, under the names that pages have.
fn metrics(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let metrics = words.filter(|word| word.contains('_') && !NO_METRICS.contains(word));
    let parts = ["_bucket", "_count", "_sum"];
    metrics.map(|word| parts.iter().find_map(|part| word.strip_suffix(part)).unwrap_or(word)).collect()
}

/// The expressions of alerts, or of the panels of a dashboard.
fn expressions(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, value)| match value.as_str() {
                Some(text) if name == "expr" => vec![text],
                Some(_) | None => expressions(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(expressions).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn check(rules: &Value, page: &str) -> Vec<String> {
    let alerts = alerts(rules);
    let mut complaints = Vec::new();
    for (alert, runbook) in &alerts {
        let expected = format!("{PAGE}#{}", alert.to_lowercase());
        if *runbook != expected {
            complaints.push(format!("{RULES}: the runbook of {alert} is not {expected}"));
        }
        let section = section(page, alert);
        let missing = PARTS.iter().filter(|part| !section.lines().any(|line| line.starts_with(*part)));
        complaints.extend(missing.map(|part| format!("{PAGE}: {alert} has no line {part}")));
    }
    let named: BTreeSet<&str> = alerts.iter().map(|(alert, _)| *alert).collect();
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let strange = headings.filter(|heading| !named.contains(heading));
    complaints.extend(strange.map(|heading| format!("{PAGE}: {heading} is no alert")));
    complaints
}

#[test]
fn every_alert_has_its_runbook() {
    let rules: Value = serde_yaml::from_str(&read(RULES)).unwrap();
    assert!(!alerts(&rules).is_empty(), "{RULES}: no alerts");
    crate::none(check(&rules, &read(PAGE)));
}

#[test]
fn every_metric_of_an_alert_or_panel_is_documented() {
    let operating = read("docs/operating.md");
    let mut known = section(&operating, "Metrics").to_owned();
    known.extend(tree::files("operators", "/README.md").iter().map(|page| section(&page.text, "Metrics").to_owned()));
    let (rules, dashboard): (Value, Value) =
        (serde_yaml::from_str(&read(RULES)).unwrap(), serde_json::from_str(&read(DASHBOARD)).unwrap());
    for (path, value) in [(RULES, &rules), (DASHBOARD, &dashboard)] {
        let named: BTreeSet<&str> = expressions(value).into_iter().flat_map(metrics).collect();
        assert!(named.len() > 5, "{path}: {named:?}");
        let unknown = named.iter().filter(|name| !known.contains(&format!("`{name}`")));
        crate::none(unknown.map(|name| format!("{path}: {name} is documented nowhere")));
    }
}

#[test]
fn metrics_are_found_in_expressions() {
    let expression = "histogram_quantile(0.99, sum by (job, le) (rate(a_seconds_bucket{job=~\"$job\"}[$__rate_interval]))) > b_total";
    assert_eq!(metrics(expression), BTreeSet::from(["a_seconds", "b_total"]));
    let panels = serde_json::json!({"panels": [{"title": "a", "targets": [{"expr": "a_b"}, {"expr": "c_d"}]}]});
    assert_eq!(expressions(&panels), ["a_b", "c_d"]);
}

#[test]
fn each_rule_fires() {
    let rule = |alert: &str, runbook: &str| serde_json::json!({"alert": alert, "annotations": {"runbook": runbook}});
    let rules = |rules: &[Value]| serde_json::json!({"spec": {"groups": [{"rules": rules}]}});
    let one = rules(&[rule("ItFails", "docs/runbooks.md#itfails")]);
    let page = "# Runbooks\n\n## ItFails\n\n**Means.** a\n**Look.** b\n**Do.** c\n";
    assert!(check(&one, page).is_empty());
    assert_eq!(check(&one, &page.replace("**Look.** b\n", "")), ["docs/runbooks.md: ItFails has no line **Look.** "]);
    assert_eq!(check(&rules(&[]), page), ["docs/runbooks.md: ItFails is no alert"]);
    let wrong = rules(&[rule("ItFails", "x")]);
    let expected = format!("{RULES}: the runbook of ItFails is not docs/runbooks.md#itfails");
    assert_eq!(check(&wrong, page), [expected]);
}
