//! Rules on alerts and dashboards: each alert has its part of the page of runbooks, and every metric and queue exists.
//! Left out: whether a rule is valid and fires, which promtool and Prometheus show in the e2e suite.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::operators::section;
use crate::tree::{self, read};

const RULES: &str = "manifests/components/prometheus-rules/rules.yaml";
const PAGE: &str = "docs/runbooks.md";
const DASHBOARDS: &str = "manifests/components/dashboards";
/// What encloses labels and times in an expression.
const NO_METRICS: [(&str, &str); 3] = [("{", "}"), ("[", "]"), ("by (", ")")];
/// What each part of the page says.
const PARTS: [&str; 3] = ["**Means.** ", "**Look.** ", "**Do.** "];

/// The alerts of these rules, with their annotation of a runbook.
fn alerts(rules: &Value) -> Vec<(&str, &str)> {
    let groups = rules["spec"]["groups"].as_array().into_iter().flatten();
    let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
    rules.map(|rule| (text(&rule["alert"]), text(&rule["annotations"]["runbook"]))).collect()
}

/// The metrics in an expression.
fn metrics(expression: &str) -> BTreeSet<String> {
    let bare = NO_METRICS.iter().fold(expression.to_owned(), |text, (open, close)| without(&text, open, close));
    let words = bare.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.contains('_') && *word != "histogram_quantile").map(str::to_owned).collect()
}

/// The name of a metric, and that of the histogram of which it may be a part.
fn names(metric: &str) -> impl Iterator<Item = &str> {
    ["", "_bucket", "_count", "_sum"].into_iter().filter_map(|part| metric.strip_suffix(part))
}

/// The text without what these enclose.
fn without(text: &str, open: &str, close: &str) -> String {
    let mut parts = text.split(open);
    let first = parts.next().unwrap_or_default();
    let rest = parts.filter_map(|part| part.split_once(close)).map(|(_, rest)| rest);
    std::iter::once(first).chain(rest).collect()
}

/// The queues that an expression, or the query of a variable, selects.
fn queues(expression: &str) -> Vec<&str> {
    let selected = expression.split("name=~\"").skip(1);
    selected.filter_map(|rest| rest.split('"').next()).flat_map(|names| names.split('|')).collect()
}

/// The dashboards: their paths, and what is in them.
fn dashboards() -> Vec<(String, Value)> {
    let files = tree::files(DASHBOARDS, ".json").into_iter();
    files.map(|file| (file.path, serde_json::from_str(&file.text).unwrap())).collect()
}

/// Whether a program registers this metric. The registry adds these endings itself.
fn is_registered(metric: &str, sources: &[tree::File]) -> bool {
    let endings = ["", "_total", "_info"].into_iter();
    let names = endings.filter_map(|ending| metric.strip_suffix(ending)).flat_map(names);
    let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    sources.iter().any(|source| names.iter().any(|name| source.text.contains(name)))
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
    let mut sources = tree::files("shared/src", ".rs");
    sources.extend(tree::files("operators", ".rs"));
    let rules = (RULES.to_owned(), serde_yaml::from_str(&read(RULES)).unwrap());
    for (path, value) in dashboards().into_iter().chain([rules]) {
        let named: BTreeSet<String> = expressions(&value).into_iter().flat_map(metrics).collect();
        assert!(named.len() > 5, "{path}: {named:?}");
        let undocumented =
            named.iter().filter(|metric| !names(metric).any(|name| known.contains(&format!("`{name}`"))));
        crate::none(undocumented.map(|name| format!("{path}: {name} is documented nowhere")));
        let unknown = named.iter().filter(|name| !is_registered(name, &sources));
        crate::none(unknown.map(|name| format!("{path}: no program registers {name}")));
    }
}

#[test]
fn every_queue_of_a_panel_is_an_operators() {
    let known: BTreeSet<&str> = facts::ALL.iter().flat_map(|facts| facts.queues).map(|queue| queue.name).collect();
    let dashboards = dashboards();
    let variables = dashboards.iter().filter_map(|(path, dashboard)| {
        let variable = dashboard["templating"]["list"].as_array()?.iter().find(|variable| variable["name"] == "job")?;
        Some((path, text(&variable["query"])))
    });
    let panels =
        dashboards.iter().flat_map(|(path, dashboard)| expressions(dashboard).into_iter().map(move |it| (path, it)));
    let queues: BTreeSet<(&String, &str)> =
        panels.chain(variables).flat_map(|(path, text)| queues(text).into_iter().map(move |it| (path, it))).collect();
    assert!(queues.len() > 10, "{queues:?}");
    let unknown = queues.iter().filter(|(_, queue)| !known.contains(queue));
    crate::none(unknown.map(|(path, queue)| format!("{path}: no operator has the queue {queue}")));
}

#[test]
fn each_dashboard_is_in_the_component() {
    let component = read(&format!("{DASHBOARDS}/kustomization.yaml"));
    let (names, titles): (BTreeSet<String>, BTreeSet<String>) = dashboards()
        .into_iter()
        .map(|(path, value)| {
            let missing = !path.rsplit('/').next().is_some_and(|name| component.contains(&format!("      - {name}\n")));
            assert!(!missing, "{path} is not in the component");
            (text(&value["uid"]).to_owned(), text(&value["title"]).to_owned())
        })
        .unzip();
    let count = dashboards().len();
    assert_eq!((names.len(), titles.len()), (count, count), "{names:?} {titles:?}");
}

#[test]
fn metrics_are_found_in_expressions() {
    let expression = "histogram_quantile(0.99, sum by (job, le) (rate(a_seconds_bucket{job=~\"$job\"}[$__rate_interval]))) > b_total";
    assert_eq!(metrics(expression), BTreeSet::from(["a_seconds_bucket", "b_total"].map(str::to_owned)));
    assert_eq!(queues("a_seconds{job=~\"$job\",name=~\"b|c\"}"), ["b", "c"]);
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
