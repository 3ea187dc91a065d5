//! Alerts fire when they should, by promtool's own tests and in a Prometheus that scrapes an operator; the queries of the
//! dashboards give data in one that scrapes them all.
//! `make e2e` leaves this module out, and `make e2e-minutes` runs it.
//!
//! Left out: that each alert has a runbook and names metrics that exist, which tidy reads from the files.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::dashboard::Dashboard;
use e2e::prometheus::{check_rules, promtool};
use e2e::rbac;
use futures::future::try_join_all;
use release::manifests::Manifests;
use serde_json::{Value, json};

use crate::batch::{exiting, indexed, job, with};
use crate::privilege::live_every_life;
use crate::support::attachments::{MANAGED, bound};
use crate::support::clusters::{metrics_token, spec};
use crate::support::scene::runtime;
use crate::support::{DEADLINE, Scene, operators, start_operators, template, with_cluster};

/// A series as promtool writes it: its name and labels, and its values minute by minute.
type Series = (&'static str, &'static str);

/// Each alert, with series in which it fires at this minute. `{}` stands for the label of the operator.
const FIRING: [(&str, &[Series], u32); 16] = [
    ("OperatorIsDown", &[("up{}", "0x90")], 4),
    ("OperatorIsGone", &[("leader_election_master_status{name='a'}", "1x30")], 80),
    ("OperatorHasNoLeader", &[("leader_election_master_status{name='a'}", "0x90")], 4),
    (
        "OperatorHasTwoLeaders",
        &[
            ("leader_election_master_status{name='a',pod='1'}", "1x90"),
            ("leader_election_master_status{name='a',pod='2'}", "1x90"),
        ],
        4,
    ),
    ("OperatorPanics", &[("worker_panics_total{name='a'}", "0x3 1x90")], 6),
    ("OperatorCannotDecode", &[("informer_decode_errors_total{resource='pods'}", "0x3 1x90")], 6),
    ("OperatorCacheIsNotSynced", &[("informer_synced{resource='pods',instance='1'}", "0x90")], 8),
    ("OperatorWatchIsSilent", &[("informer_silence_seconds{resource='pods',instance='1'}", "0+60x90")], 18),
    (
        "OperatorQueueIsSlow",
        &[
            ("workqueue_queue_duration_seconds_bucket{name='a',le='10'}", "0x90"),
            ("workqueue_queue_duration_seconds_bucket{name='a',le='100'}", "0+9x90"),
            ("workqueue_queue_duration_seconds_bucket{name='a',le='+Inf'}", "0+9x90"),
        ],
        30,
    ),
    ("OperatorSyncHangs", &[("workqueue_longest_running_processor_seconds{name='a'}", "0+60x90")], 15),
    (
        "OperatorRetries",
        &[("workqueue_retries_total{name='a'}", "0+60x90"), ("workqueue_adds_total{name='a'}", "0+90x90")],
        50,
    ),
    ("OperatorIsRefused", &[("rest_client_requests_total{code='403',method='GET'}", "0+6x90")], 30),
    (
        "OperatorRequestsFail",
        &[
            ("rest_client_requests_total{code='500',method='GET'}", "0+6x90"),
            ("rest_client_requests_total{code='200',method='GET'}", "0+9x90"),
        ],
        30,
    ),
    ("OperatorControllerRestarts", &[("controller_restarts_total{name='a'}", "0+1x90")], 30),
    ("OperatorSlowsDeletions", &[("mass_deletion_brake_held_total{}", "0x3 5x90")], 6),
    (
        "OperatorVersionsDiffer",
        &[("operator_build_info{version='v1'}", "1x90"), ("operator_build_info{version='v2'}", "1x90")],
        70,
    ),
];

/// Series of an operator that is well, with some faults as they happen every day.
const HEALTHY: [Series; 20] = [
    ("up{}", "1x90"),
    ("leader_election_master_status{name='a',pod='1'}", "1x90"),
    ("leader_election_master_status{name='a',pod='2'}", "0x90"),
    ("worker_panics_total{name='a'}", "0x90"),
    ("informer_decode_errors_total{resource='pods'}", "0x90"),
    ("informer_synced{resource='pods',instance='1'}", "0x3 1x90"),
    // An apiserver that has just started sends no bookmark before it has heard from etcd.
    ("informer_silence_seconds{resource='pods',instance='1'}", "0+60x14 55x90"),
    ("workqueue_queue_duration_seconds_bucket{name='a',le='10'}", "0+9x90"),
    ("workqueue_queue_duration_seconds_bucket{name='a',le='100'}", "0+9x90"),
    ("workqueue_queue_duration_seconds_bucket{name='a',le='+Inf'}", "0+9x90"),
    ("workqueue_longest_running_processor_seconds{name='a'}", "1x90"),
    ("workqueue_retries_total{name='a'}", "0+6x90"),
    ("workqueue_adds_total{name='a'}", "0+90x90"),
    // An admission plugin refuses a pod by the same code, such as for a quota.
    ("rest_client_requests_total{code='403',method='POST'}", "0+6x90"),
    ("rest_client_requests_total{code='500',method='GET'}", "0+1x90"),
    ("rest_client_requests_total{code='200',method='GET'}", "0+90x90"),
    ("controller_restarts_total{name='a'}", "0x20 1x90"),
    ("mass_deletion_brake_held_total{}", "5x90"),
    ("operator_build_info{version='v1'}", "1x90"),
    // Of another program, which is standing by.
    ("leader_election_master_status{job='scheduler',name='b'}", "0x90"),
];

/// The groups of rules.
fn groups() -> Result<Value> {
    let objects = Manifests::here()?.component("prometheus-rules")?;
    let rules = objects.into_iter().find(|object| object["kind"] == "PrometheusRule");
    rules.map(|rules| rules["spec"]["groups"].clone()).context("no PrometheusRule")
}

fn rules(groups: &Value) -> impl Iterator<Item = &Value> {
    let groups = groups.as_array().into_iter().flatten();
    groups.flat_map(|group| group["rules"].as_array().into_iter().flatten())
}

/// One test of promtool's: in these series, so many alerts of the expression are at work at this minute.
fn case(series: &[Series], minute: u32, alerts: &str, expected: &Value) -> Value {
    let of_operator = |name: &str| {
        let label = if name.contains("job=") { "" } else { "job='job-operator'," };
        name.replacen('{', &format!("{{{label}"), 1).replace(",}", "}")
    };
    let input: Vec<Value> =
        series.iter().map(|(name, values)| json!({"series": of_operator(name), "values": values})).collect();
    let expression = format!("count(ALERTS{{alertstate='firing'{alerts}}})");
    let test = json!({"expr": expression, "eval_time": format!("{minute}m"), "exp_samples": expected});
    json!({"interval": "1m", "input_series": input, "promql_expr_test": [test]})
}

#[test]
fn every_alert_fires_for_what_it_is_about_and_none_when_all_is_well() -> Result<()> {
    runtime()?.block_on(async {
        let groups = groups()?;
        let named: BTreeSet<&str> = rules(&groups).filter_map(|rule| rule["alert"].as_str()).collect();
        let tested: BTreeSet<&str> = FIRING.iter().map(|(alert, ..)| *alert).collect();
        ensure!(named == tested, "alerts {named:?}, tested {tested:?}");
        let folder = tempfile::tempdir().context("make a folder for rules")?;
        let path = folder.path().join("rules.json");
        check_rules(&path, &groups).await?;
        let one = json!([{"labels": "{}", "value": 1}]);
        let firing =
            FIRING.iter().map(|(alert, series, minute)| case(series, *minute, &format!(",alertname='{alert}'"), &one));
        let well = (5..=90).step_by(5).map(|minute| case(&HEALTHY, minute, "", &json!([])));
        let tests: Vec<Value> = firing.chain(well).collect();
        let file = folder.path().join("tests.json");
        let content = json!({"rule_files": [path], "evaluation_interval": "1m", "tests": tests});
        std::fs::write(&file, content.to_string()).context("write tests")?;
        promtool(["test".as_ref(), "rules".as_ref(), file.as_os_str()]).await.map(drop)
    })
}

/// The queries of all dashboards, with their panels. Each asks for data of the last minutes, because an object's data end
/// with the object.
fn queries() -> Result<Vec<(String, String)>> {
    let objects = Manifests::here()?.component("dashboards")?;
    let files = objects.iter().find_map(|object| object["data"].as_object()).context("no dashboards")?;
    let mut queries = Vec::new();
    for (file, text) in files {
        let dashboard: Dashboard = serde_json::from_str(text.as_str().unwrap_or_default()).context(file.clone())?;
        for panel in &dashboard.panels {
            let title = format!("{file}: {}", panel.title);
            let of_panel = panel.targets.iter().map(|target| target.query("30s"));
            queries.extend(of_panel.map(|query| (title.clone(), format!("count_over_time(({query})[20m:2s])"))));
        }
    }
    Ok(queries)
}

/// What no life has, or only for a moment: indexes, a policy for failed pods, and an attached volume.
async fn leave_objects(scene: &Scene) -> Result<()> {
    scene.apply(&indexed("pi", 3, 3)).await?;
    let rules = json!([{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}}]);
    scene.apply(&exiting(with(job("policy", 1, 2), &json!({"podFailurePolicy": {"rules": rules}})), 3)).await?;
    scene.kubectl(&format!("annotate node/node-0 {MANAGED}=true")).await?;
    bound(scene, "data").await?;
    let mut spec = template("web")["spec"].clone();
    spec["nodeName"] = json!("node-0");
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    scene.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})).await?;
    Ok(())
}

#[test]
fn every_query_of_the_dashboards_has_data_of_what_operators_do() -> Result<()> {
    // Some lives look into the audit log.
    let options = ClusterOptions {
        has_node_lifecycle: true,
        audit: true,
        audit_policy: rbac::AUDIT_POLICY,
        ..ClusterOptions::default()
    };
    with_cluster(options.with_gated_kinds(), async |scene| {
        let names = operators().filter(|operator| !facts::needs_cloud(operator));
        let operators = try_join_all(names.map(async |name| {
            let mut spec = spec(&scene.cluster, name).await?;
            if name == "statefulset-operator" {
                // Without it there is no metric of unavailable pods.
                spec.flags.push("--feature-gates=MaxUnavailableStatefulSet=true".to_owned());
            }
            let mut operator = scene.cluster.start_operator(&spec).await?;
            operator.wait_ready().await?;
            anyhow::Ok(operator)
        }))
        .await?;
        let token = metrics_token(scene).await?;
        let prometheus = scene.cluster.start_prometheus(&operators, &token, &json!([]))?;
        live_every_life(scene).await?;
        leave_objects(scene).await?;
        let mut left = queries()?;
        ensure!(left.len() > 80, "{} queries", left.len());
        scene
            .wait_until("every panel has data", DEADLINE, async || {
                let mut without = Vec::new();
                for (title, query) in &left {
                    if prometheus.query(query).await?.is_empty() {
                        without.push((title.clone(), query.clone()));
                    }
                }
                left = without;
                ensure!(left.is_empty(), "nothing for {left:#?}");
                Ok(())
            })
            .await
    })
}

#[test]
fn an_alert_fires_when_an_operator_is_down() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let mut operators = start_operators(&scene.cluster, ["job-operator"]).await?;
        let token = metrics_token(scene).await?;
        let mut groups = groups()?;
        // As it is after minutes.
        for group in groups.as_array_mut().into_iter().flatten() {
            for rule in group["rules"].as_array_mut().into_iter().flatten() {
                rule["for"] = json!("0s");
            }
        }
        let prometheus = scene.cluster.start_prometheus(&operators, &token, &groups)?;
        scene
            .wait_until("it is scraped", DEADLINE, async || {
                let up = prometheus.query("up{job=\"job-operator\"} == 1").await?;
                ensure!(!up.is_empty(), "it is not");
                Ok(())
            })
            .await?;
        let firing = "ALERTS{alertname=\"OperatorIsDown\",job=\"job-operator\",alertstate=\"firing\"}";
        let before = prometheus.query(firing).await?;
        ensure!(before.is_empty(), "it fires while the operator runs: {before:?}");
        operators.first_mut().context("no operator")?.kill();
        scene
            .wait_until("the alert fires", DEADLINE, async || {
                ensure!(!prometheus.query(firing).await?.is_empty(), "it does not fire");
                Ok(())
            })
            .await
    })
}
