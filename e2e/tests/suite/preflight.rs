//! `kubectl operators preflight` beside a kube-controller-manager that works, beside one that leaves what an operator would
//! change on purpose, and after it has gone; and the story that `why --trace` tells of an edit.
//!
//! Left out: what shadows find, which their own tests show, and what else is checked, a table over what was read.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cli::preflight::{Answer, Inspected, Outcome, Preflight, PreflightOptions, operators, preflight};
use cli::reach::{ReachOptions, parse_server};
use cli::run::Session;
use cli::trace::{Link, Origin, Step, Trace};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::{Operator, upstream_controller};
use futures::try_join;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Patch, PatchParams};
use kube::config::Kubeconfig;
use kube::{Api, ResourceExt};
use serde_json::json;
use shared::transport::clock::Clock;

use crate::batch::job;
use crate::support::clusters::{manifests, program, spec};
use crate::support::{DEADLINE, Scene, deployment, start_operators, with_cluster};

const NAMES: [&str; 2] = ["deployment", "replicaset-controller"];

/// The account by which the administrator, who has a client certificate, speaks to shadows and operators.
async fn viewer(scene: &Scene) -> Result<()> {
    let viewer = manifests("viewer");
    scene.cluster.kubectl([OsStr::new("apply"), OsStr::new("-k"), viewer.as_os_str()]).await?;
    Ok(())
}

async fn look(scene: &Scene, names: &[&str]) -> Result<Preflight> {
    let path = scene.cluster.kubeconfig();
    let config = e2e::kubeconfig::config(path).await?;
    let options = PreflightOptions {
        operators: operators(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?,
        program: Some(program()),
        kubeconfig: Kubeconfig::read_from(path)?,
        timeout: Duration::from_secs(120),
        reach: ReachOptions::default(),
    };
    let clock = Clock::system();
    let found = preflight(config.try_into()?, options, || clock.now(), &|_| ()).await?;
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    ensure!(leases.get_opt("deployment-operator").await?.is_none(), "a shadow holds a Lease");
    Ok(found)
}

fn of<'a>(found: &'a Preflight, operator: &str) -> Result<&'a Inspected> {
    let of = found.operators.iter().find(|inspected| inspected.operator == operator);
    of.with_context(|| format!("nothing was said of {operator}: {found}"))
}

#[test]
fn a_takeover_would_write_nothing_until_somebody_changes_what_nobody_looks_after() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        viewer(scene).await?;
        for name in ["web", "api", "db"] {
            scene.apply(&deployment(name, 2)).await?;
            scene.rolled_out(name).await?;
        }
        let found = look(scene, &NAMES).await?;
        ensure!(found.outcome() == Outcome::Clear, "{found}");
        for operator in ["deployment-operator", "replicaset-operator"] {
            let inspected = of(&found, operator)?;
            ensure!(inspected.answer == Answer::Nothing, "{found}");
            let seen: u64 = inspected.report.iter().flat_map(|report| report.looked_at.values()).sum();
            ensure!(seen == 3, "{seen} looked at: {found}");
        }
        ensure!(found.to_string().contains("3 Deployments looked at: a takeover would write nothing"), "{found}");
        let not_there = "not installed yet: `kubectl apply -k manifests/deployment-operator`";
        ensure!(found.to_string().contains(not_there), "{found}");

        scene.cluster.stop_controller_manager().await?;
        scene.patch::<Deployment>("web", &json!({"spec": {"replicas": 5}})).await?;
        take_a_right_away(scene).await?;
        let found = look(scene, &NAMES).await?;
        ensure!(found.outcome() == Outcome::NotClear, "{found}");
        let inspected = of(&found, "deployment-operator")?;
        let differences = inspected.report.iter().flat_map(|report| &report.differences);
        let fields: Vec<String> = differences
            .filter(|difference| difference.resource == "replicasets.apps")
            .flat_map(|difference| &difference.fields)
            .map(|field| format!("{}: {} -> {}", field.path, field.has, field.wants))
            .collect();
        ensure!(inspected.answer == Answer::Differences, "{found}");
        ensure!(fields.contains(&"spec.replicas: 2 -> 5".to_owned()), "{fields:?}\n{found}");
        ensure!(of(&found, "replicaset-operator")?.answer == Answer::Nothing, "{found}");
        let lacks = "ClusterRole deployment-operator does not grant patch deployments.apps/status";
        ensure!(found.to_string().contains(lacks), "{found}");
        Ok(())
    })
}

/// A ReplicaSet of the right size that notes another one: upstream sees a scaling event in it, for ever.
async fn note_another_size(scene: &Scene) -> Result<()> {
    scene.apply(&deployment("web", 1)).await?;
    scene.rolled_out("web").await?;
    let set = scene.list::<ReplicaSet>("app=web").await?.pop().context("no ReplicaSet")?.name_any();
    let noted = json!({"deployment.kubernetes.io/desired-replicas": "5"});
    scene.patch::<ReplicaSet>(&set, &json!({"metadata": {"annotations": noted}})).await.map(drop)
}

/// An active Job of a CronJob that is gone, and a stranger of its name.
async fn take_a_name(scene: &Scene) -> Result<()> {
    scene.apply(&job("taken", 1, 1)).await?;
    let suspended = json!({"metadata": {"name": "nightly"}, "apiVersion": "batch/v1", "kind": "CronJob",
        "spec": {"schedule": "30 4 2 1 *", "jobTemplate": {"spec": job("x", 1, 1)["spec"]}}});
    scene.apply(&suspended).await?;
    let gone = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "taken", "namespace": scene.namespace,
        "uid": "7d0f0000-0000-4000-8000-000000000000"});
    scene.patch_status::<CronJob>("nightly", &json!({"status": {"active": [gone]}})).await.map(drop)
}

#[test]
fn what_an_operator_does_otherwise_on_purpose_is_named_as_such() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        viewer(scene).await?;
        try_join!(note_another_size(scene), take_a_name(scene))?;
        let found = look(scene, &["deployment", "cronjob"]).await?;
        for inspected in &found.operators {
            let Inspected { operator, answer, report, documented, .. } = inspected;
            let differences = report.as_ref().map_or(0, |report| report.differences.len());
            ensure!(*answer == Answer::Differences && differences == 1, "{operator}: {differences}\n{found}");
            ensure!(documented.len() == 1, "{operator}: {documented:?}\n{found}");
            ensure!(found.to_string().contains(&format!("    on purpose: {}\n", documented[0])), "{found}");
        }
        Ok(())
    })
}

/// Installs the role of deployment-operator, without its right to write a status.
async fn take_a_right_away(scene: &Scene) -> Result<()> {
    spec(&scene.cluster, "deployment-operator").await?;
    let roles: Api<ClusterRole> = Api::all(scene.client.clone());
    let mut rules = roles.get("deployment-operator").await?.rules.unwrap_or_default();
    rules.retain(|rule| rule.resources != Some(vec!["deployments/status".to_owned()]));
    let patch = Patch::Merge(json!({"rules": rules}));
    roles.patch("deployment-operator", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The first step that fits, of a step and all that followed.
fn find<'a>(steps: &'a [Step], fits: &impl Fn(&Step) -> bool) -> Option<&'a Step> {
    steps.iter().find_map(|step| if fits(step) { Some(step) } else { find(&step.followed, fits) })
}

/// An edit of the Deployment led to a ReplicaSet, and that to pods.
fn leads_to_pods(trace: &Trace, set: &str) -> Result<()> {
    let story = trace.stories.iter().find(|story| {
        matches!(&story.origin, Origin::Change { object, .. } if object.resource == "deployments.apps")
            && find(&story.syncs, &|step| wrote(step, "replicasets.apps", set)).is_some()
    });
    let story = story.with_context(|| format!("no edit led to {set}:\n{trace}"))?;
    let made = find(&story.syncs, &|step| wrote(step, "replicasets.apps", set)).context("it was found")?;
    ensure!(made.operator == "deployment-operator", "{made:?}");
    let created = find(&made.followed, &|step| step.operator == "replicaset-operator" && wrote(step, "pods", set));
    let created = created.with_context(|| format!("no pods followed:\n{trace}"))?;
    ensure!(matches!(created.link, Link::Exact | Link::Later { .. }), "{created:?}");
    ensure!(created.since_cause.is_some_and(|since| (0..30_000).contains(&since)), "{created:?}");
    Ok(())
}

/// A pod that was created led to an EndpointSlice.
fn leads_to_a_slice(trace: &Trace, set: &str) -> Result<()> {
    let steps: Vec<Step> = trace.stories.iter().flat_map(|story| story.syncs.clone()).collect();
    let created = find(&steps, &|step| step.operator == "replicaset-operator" && wrote(step, "pods", set));
    let created = created.with_context(|| format!("no pods were created:\n{trace}"))?;
    let slice = find(&created.followed, &|step| wrote(step, "endpointslices.discovery.k8s.io", "api-"));
    slice.with_context(|| format!("no EndpointSlice followed:\n{trace}"))?;
    Ok(())
}

fn wrote(step: &Step, resource: &str, name: &str) -> bool {
    let is_it = |object: &str| object.split('/').next_back().is_some_and(|object| object.starts_with(name));
    step.wrote.iter().any(|version| version.resource == resource && is_it(&version.object))
}

#[test]
fn a_trace_leads_from_an_edit_through_the_operators_to_an_endpoint_slice() -> Result<()> {
    let names = ["deployment-operator", "replicaset-operator", "endpointslice-operator"];
    // The role by which the viewer sees objects is put together by kube-controller-manager.
    let rest = ControllerManager::without(names.map(upstream_controller));
    let options = ClusterOptions { controller_manager: Some(rest), ..ClusterOptions::default() };
    with_cluster(options, async |scene| {
        let all = start_operators(&scene.cluster, names).await?;
        viewer(scene).await?;
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "api"},
            "spec": {"selector": {"app": "api"}, "ports": [{"port": 80}]}});
        scene.apply(&service).await?;
        scene.apply(&deployment("api", 1)).await?;
        // Nothing happens to a pod that no node takes: the decisions that led to it are not pushed out by later ones.
        let mut waiting = deployment("web", 1);
        waiting["spec"]["template"]["spec"]["nodeSelector"] = json!({"no": "node"});
        scene.apply(&waiting).await?;
        let server =
            |operator: &Operator| parse_server(&format!("{}=https://127.0.0.1:{}", operator.name(), operator.port()));
        let servers = all.iter().map(server).collect::<Result<_, _>>().map_err(anyhow::Error::msg)?;
        let config = e2e::kubeconfig::config(scene.cluster.kubeconfig()).await?;
        let session = Session::new(config, ReachOptions { servers, ..ReachOptions::default() }).await?;
        let traced = async |name: &str, is_told: fn(&Trace, &str) -> Result<()>| {
            scene
                .wait_until(&format!("the story of {name} is told"), DEADLINE, async || {
                    let sets = scene.list::<ReplicaSet>(&format!("app={name}")).await?;
                    let set = sets.first().context("no ReplicaSet yet")?.name_any();
                    let trace = session.trace(&[format!("deployment/{name}")], &scene.namespace).await?;
                    is_told(&trace, &set)
                })
                .await
        };
        traced("web", leads_to_pods).await?;
        traced("api", leads_to_a_slice).await
    })
}
