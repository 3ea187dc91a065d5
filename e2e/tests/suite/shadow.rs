//! Operators as shadows beside kube-controller-manager: they write nothing, and find nothing to write where it has done
//! its work.
//!
//! What differs on purpose is named one by one. Left out: which operator decides what, which other tests show.

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::operator::Operator;
use e2e::rbac::{self, Usage};
use futures::future::try_join_all;
use http::StatusCode;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde::Deserialize;
use serde_json::Value;

use crate::privilege;
use crate::support::clusters::{debug_token, spec};
use crate::support::{DEADLINE, Scene, operators, with_cluster};

/// What a shadow answers at `/debug/shadow`, as far as these tests read it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    operator: String,
    complete: bool,
    moving: u64,
    looked_at: std::collections::BTreeMap<String, u64>,
    differences: Vec<Difference>,
    #[serde(default)]
    more_differences: u64,
}

#[derive(Debug, Deserialize)]
struct Difference {
    key: String,
    verb: String,
    resource: String,
    object: String,
    stages: Vec<Value>,
    #[serde(default)]
    fields: Vec<Field>,
}

#[derive(Debug, Deserialize)]
struct Field {
    path: String,
    has: Value,
    wants: Value,
}

impl Report {
    /// `job-operator patch jobs.batch/status ns/a: status.active: 1 -> 2`.
    fn lines(&self) -> impl Iterator<Item = String> {
        self.differences.iter().map(|Difference { key, verb, resource, object, stages, fields }| {
            let fields = fields.iter().map(|Field { path, has, wants }| format!("{path}: {has} -> {wants}"));
            let fields = fields.collect::<Vec<_>>().join(", ");
            format!("{} {verb} {resource} {object}: {fields} ({key} {})", self.operator, Value::from(stages.clone()))
        })
    }
}

/// Every operator as a shadow, under its own account and role.
async fn start_shadows(scene: &Scene) -> Result<Vec<Operator>> {
    try_join_all(operators().map(async |name| {
        let mut of = spec(&scene.cluster, name).await?;
        of.flags.push("--mode=shadow".to_owned());
        let mut shadow = scene.cluster.start_operator(&of).await?;
        shadow.wait_ready().await?;
        Ok(shadow)
    }))
    .await
}

async fn report(shadow: &Operator, token: &str) -> Result<Report> {
    let (status, body) = shadow.get("/debug/shadow", Some(token)).await?;
    ensure!(status == StatusCode::OK, "{}: {status}: {body}", shadow.name());
    serde_json::from_str(&body).with_context(|| format!("{}: {body}", shadow.name()))
}

/// What all shadows have found, once everything has come to rest.
async fn at_rest(scene: &Scene, shadows: &[Operator], token: &str) -> Result<Vec<Report>> {
    scene
        .wait_until("every shadow has looked at everything at rest", 2 * DEADLINE, async || {
            try_join_all(shadows.iter().map(async |shadow| {
                let report = report(shadow, token).await?;
                let Report { operator, complete, moving, looked_at, .. } = &report;
                ensure!(*complete && *moving == 0, "{operator}: {moving} keys move, looked at {looked_at:?}");
                Ok(report)
            }))
            .await
        })
        .await
}

fn lines(reports: &[Report]) -> Vec<String> {
    reports.iter().flat_map(Report::lines).collect()
}

/// Nothing was sent that could change something, and the log is one that would show it.
async fn check_silence(scene: &Scene) -> Result<()> {
    let usage = Usage::read(&std::fs::read_to_string(scene.cluster.audit_log()?)?)?;
    for operator in operators() {
        let writes = usage.writes(operator);
        ensure!(usage.count_asked(operator) > 0, "{operator} has read nothing");
        ensure!(writes.is_empty(), "{operator} has written: {writes:?}");
    }
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    let held: Vec<String> =
        leases.list(&ListParams::default()).await?.items.iter().map(ResourceExt::name_any).collect();
    ensure!(held.iter().all(|lease| !operators().any(|operator| operator == lease)), "there are leases: {held:?}");
    Ok(())
}

#[test]
fn shadows_of_every_life_write_nothing_and_agree_with_what_is_left() -> Result<()> {
    let options =
        ClusterOptions { audit: true, audit_policy: rbac::AUDIT_POLICY, ..ClusterOptions::with_controller_manager() };
    with_cluster(options, async |scene| {
        let token = debug_token(scene).await?;
        let shadows = start_shadows(scene).await?;
        privilege::live_every_life(scene).await?;
        let reports = at_rest(scene, &shadows, &token).await?;
        check_silence(scene).await?;
        let found = lines(&reports);
        ensure!(found.is_empty(), "{}", found.join("\n"));
        Ok(())
    })
}
