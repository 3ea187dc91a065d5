//! Operators as shadows beside kube-controller-manager: they write nothing, and find nothing to write where it has done
//! its work.
//!
//! Intended differences are named one by one. Left out: the decisions of each operator, which other tests show.

mod objects;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::operator::{Installed, Operator, OperatorSpec};
use e2e::rbac::{self, Usage};
use futures::future::try_join_all;
use futures::try_join;
use http::StatusCode;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::clusters::{debug_token, manifests, program};
use crate::support::{DEADLINE, Scene, operators, with_cluster};
use crate::{privilege, side_by_side};

/// They decide so often that kube-controller-manager cannot always have been faster.
const BUSY: [&str; 4] =
    ["deployment-operator", "job-operator", "replicaset-operator", "replicationcontroller-operator"];

/// The verbs that change nothing.
const READS: [&str; 3] = ["get", "list", "watch"];
/// What is created to ask who may see a page.
const REVIEWS: [&str; 2] = ["tokenreviews", "subjectaccessreviews"];

/// A shadow's answer at `/debug/shadow`, as far as these tests read it.
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

/// Every operator as a shadow, under its own account and what the component for shadows leaves of its role.
async fn start_shadows(scene: &Scene) -> Result<Vec<Operator>> {
    let shadows = try_join_all(operators().map(async |name| {
        let account = install(scene, name).await?;
        let mut of = OperatorSpec::new(name, program(), &account);
        of.flags.push("--mode=shadow".to_owned());
        let mut shadow = scene.cluster.start_operator(&of).await?;
        shadow.wait_ready().await?;
        Ok::<_, anyhow::Error>(shadow)
    }))
    .await?;
    for name in operators() {
        let rules = rules(scene, name).await?;
        let is_review = |rule: &&PolicyRule| {
            rule.verbs == ["create"] && rule.resources.iter().flatten().all(|of| REVIEWS.contains(&of.as_str()))
        };
        let (reviews, others): (Vec<_>, Vec<_>) = rules.iter().partition(is_review);
        let writes = others.iter().flat_map(|rule| &rule.verbs).find(|verb| !READS.contains(&verb.as_str()));
        let reads = !others.is_empty() && reviews.len() <= REVIEWS.len();
        ensure!(reads && writes.is_none(), "the shadow of {name} may {writes:?}: {rules:?}");
    }
    Ok(shadows)
}

/// All that an operator may do, in its namespaces and everywhere.
async fn rules(scene: &Scene, name: &str) -> Result<Vec<PolicyRule>> {
    let of_operator = ListParams::default().labels(&format!("app.kubernetes.io/name={name}"));
    let everywhere = Api::<ClusterRole>::all(scene.client.clone()).list(&of_operator).await?;
    let within = Api::<Role>::all(scene.client.clone()).list(&of_operator).await?;
    let rules =
        everywhere.items.into_iter().map(|role| role.rules).chain(within.items.into_iter().map(|role| role.rules));
    Ok(rules.flatten().flatten().collect())
}

/// An overlay of the operator's manifests with that component.
async fn install(scene: &Scene, name: &str) -> Result<Installed> {
    let folder = tempfile::tempdir().context("make a folder for an overlay")?;
    // kustomize takes no absolute paths.
    let up = "../".repeat(folder.path().components().count());
    let path = |of: &str| Ok::<_, anyhow::Error>(format!("{up}{}", manifests(of).canonicalize()?.display()));
    let overlay = json!({"resources": [path(name)?], "components": [path("components/shadow")?]});
    std::fs::write(folder.path().join("kustomization.yaml"), overlay.to_string()).context("write an overlay")?;
    scene.cluster.install(folder.path()).await
}

async fn report(shadow: &Operator, token: &str) -> Result<Report> {
    let (status, body) = shadow.get("/debug/shadow", Some(token)).await?;
    ensure!(status == StatusCode::OK, "{}: {status}: {body}", shadow.name());
    serde_json::from_str(&body).with_context(|| format!("{}: {body}", shadow.name()))
}

/// The reports of all shadows, once everything has come to rest.
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

/// Nobody would write anything but the routes of a cloud: beside kube-controller-manager nobody keeps these.
fn check_agreement(reports: &[Report]) -> Result<()> {
    let found = lines(reports).into_iter();
    let found: Vec<String> =
        found.filter(|line| !line.starts_with("node-route-operator create routes.cloud ")).collect();
    let more: u64 = reports.iter().map(|report| report.more_differences).sum();
    ensure!(found.is_empty() && more == 0, "{}\nand {more} more", found.join("\n"));
    Ok(())
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
    with_cluster(options.with_gated_kinds(), async |scene| {
        let token = debug_token(scene).await?;
        let shadows = start_shadows(scene).await?;
        privilege::live_every_life(scene).await?;
        // Objects that upstream looks at in rounds of 20 seconds, such as nodes out of service, are seen earlier here.
        scene
            .wait_until("a takeover would write nothing", 2 * DEADLINE, async || {
                check_agreement(&at_rest(scene, &shadows, &token).await?)
            })
            .await?;
        check_silence(scene).await?;
        check_fulfilled(&shadows, &token).await
    })
}

/// Those that have most to do have decided something that kube-controller-manager then did, and none has complained.
async fn check_fulfilled(shadows: &[Operator], token: &str) -> Result<()> {
    for shadow in shadows {
        let (_, metrics) = shadow.get("/metrics", Some(token)).await?;
        let is_fulfilled = metrics.contains("\nshadow_fulfilled_total{");
        ensure!(is_fulfilled || !BUSY.contains(&shadow.name()), "{} has decided nothing", shadow.name());
        let log = shadow.log()?;
        let complaint = log.lines().find(|line| line.contains("this is a shadow"));
        ensure!(complaint.is_none(), "{}: {complaint:?}", shadow.name());
    }
    Ok(())
}

#[test]
fn at_rest_a_takeover_would_write_nothing_and_what_was_tampered_with_is_found() -> Result<()> {
    let options = ClusterOptions { nodes: 10, ..ClusterOptions::with_controller_manager() };
    with_cluster(options.with_gated_kinds(), async |scene| {
        let token = debug_token(scene).await?;
        let fixtures = [scene.beside("sets").await?, scene.beside("batch").await?];
        try_join!(side_by_side::live(&fixtures[0]), side_by_side::batch::live(&fixtures[1]), objects::make(scene))?;
        let shadows = start_shadows(scene).await?;
        let reports = at_rest(scene, &shadows, &token).await?;
        check_agreement(&reports)?;
        let looked_at: u64 = reports.iter().flat_map(|report| report.looked_at.values()).sum();
        ensure!(looked_at > 1000, "{looked_at} keys were looked at");

        scene.cluster.stop_controller_manager().await?;
        let expected = privilege::tamper(scene).await?;
        // A node that needs another label is synced in every round, so it is at rest only after a minute.
        scene
            .wait_until("what was tampered with is found", 2 * DEADLINE, async || {
                let found = lines(&at_rest(scene, &shadows, &token).await?);
                let is_found = |start: &&String| found.iter().any(|line| line.starts_with(start.as_str()));
                let missing: Vec<&String> = expected.iter().filter(|start| !is_found(start)).collect();
                ensure!(missing.is_empty(), "missing: {missing:#?}\nfound:\n{}", found.join("\n"));
                Ok(())
            })
            .await
    })
}
