//! Operators that do not run, may not, do not see or wait, and what is left undone by that.
//!
//! All on one cluster, on which nobody else asks for anything: its operators are stopped, robbed and kept from seeing.
//! Left out: caches that hear nothing for minutes, which are in [`super::minutes`].

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::Operator;
use e2e::proxy::{Action, Rule};
use futures::{FutureExt, try_join};
use http::{Method, StatusCode};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::workloads::of;
use super::{Row, play, row, session, with};
use crate::batch::cronjob::cron_job;
use crate::batch::job;
use crate::support::behind::{Behind, Gate};
use crate::support::clusters::spec;
use crate::support::{DEADLINE, Scene, deployment, start_operators, template, with_cluster};

pub(super) const PODS: &str = "/api/v1/pods";
const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";
/// After so long without a write nobody writes any more.
const AT_REST: Duration = Duration::from_secs(2);

#[test]
fn what_an_operator_does_not_do_is_its_own_doing() -> Result<()> {
    // Of kube-controller-manager only what an operator does, too.
    let both =
        ControllerManager { controllers: "replicationcontroller-controller".to_owned(), ..ControllerManager::all() };
    with_cluster(
        ClusterOptions { nodes: 2, controller_manager: Some(both), ..ClusterOptions::default() },
        async |scene| {
            let crew = Crew::start(scene).await?;
            let session = session(scene, crew.ports()).await?;
            let beside = scene.beside("unreadable").await?;
            crew.show_unreadable(&beside).await?;
            unreadable().says(&beside, &session).await?;

            crew.replica_set.proxy.freeze_watches(PODS);
            // Nor is it told when it asks.
            let gate = Gate::new();
            let asks = Rule::new(gate.before()).method(Method::GET).when(|seen| seen.path.contains("/pods"));
            crew.replica_set.proxy.add(asks.always());
            let failing = Action::reply(StatusCode::INTERNAL_SERVER_ERROR);
            let creates =
                Rule::new(failing.clone()).method(Method::POST).path("/apis/apps/v1/namespaces/*/replicasets");
            crew.deployment.proxy.add(creates.always());
            let mut rows = absent();
            rows.extend(hindered());
            play(scene, &session, &rows).await?;

            crew.replica_set.proxy.clear();
            gate.let_go();
            crew.replica_set.proxy.add(Rule::new(failing).method(Method::GET).path(PODS).always());
            // A watch that was held above may open only now.
            scene
                .wait_until("pods are not followed", DEADLINE, async || {
                    crew.replica_set.proxy.cut_watches(PODS);
                    ensure!(crew.replica_set.refused(PODS), "no watch was refused");
                    Ok(())
                })
                .await?;
            let blind_beside = scene.beside("blind").await?;
            blind().play(&blind_beside, &session).await.map(drop)
        },
    )
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = absent();
    rows.extend(hindered());
    rows.extend([unreadable(), blind()]);
    rows
}

/// The operators of this cluster. Those whose processes are not kept by name only have to run.
struct Crew {
    deployment: Behind,
    replica_set: Behind,
    others: Vec<Operator>,
    /// Those that have ended, one way or the other.
    _ended: [Operator; 2],
}

impl Crew {
    async fn start(scene: &Scene) -> Result<Self> {
        let cluster = &scene.cluster;
        let elects = &["--leader-elect=true"][..];
        let (deployment, replica_set, others, mut killed, mut released) = try_join!(
            Behind::start(scene, "deployment-operator", "deployment-operator", elects),
            Behind::start(scene, "replicaset-operator", "replicaset-operator", elects),
            start_operators(cluster, ["replicationcontroller-operator", "endpointslice-operator"]),
            short_leader(scene, "job-operator"),
            short_leader(scene, "cronjob-operator"),
        )?;
        killed.kill();
        released.terminate().await?;
        let patch = r#"[{"op":"replace","path":"/rules/2/verbs","value":["list","watch"]}]"#;
        cluster.kubectl(["patch", "clusterrole", "endpointslice-operator", "--type=json", "--patch", patch]).await?;
        Ok(Self { deployment, replica_set, others, _ended: [killed, released] })
    }

    fn ports(&self) -> impl Iterator<Item = (&str, u16)> {
        let behind = [&self.deployment, &self.replica_set].map(|behind| &behind.operator);
        behind.into_iter().chain(&self.others).map(|operator| (operator.name(), operator.port()))
    }

    /// Lets the operator see a state of a ReplicaSet at rest that it cannot read.
    async fn show_unreadable(&self, scene: &Scene) -> Result<()> {
        scene.apply(&replica_set()).await?;
        let set = complete(scene).await?;
        // Once it has synced a younger one, it has seen the last of this one's own events.
        let spec =
            json!({"replicas": 0, "selector": {"matchLabels": {"app": "younger"}}, "template": template("younger")});
        scene.apply(&of("apps/v1", "ReplicaSet", "younger", &json!({"spec": spec}))).await?;
        scene
            .wait_until("the younger ReplicaSet was synced", DEADLINE, async || {
                let younger: ReplicaSet = scene.fetch("younger").await?;
                ensure!(younger.status.and_then(|status| status.observed_generation).is_some(), "it has no status");
                Ok(())
            })
            .await?;
        let broken = json!({"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {
            "name": "web", "namespace": scene.namespace, "uid": set.uid(),
            "resourceVersion": set.resource_version(), "labels": "none",
        }});
        let event = json!({"type": "MODIFIED", "object": broken}).to_string();
        let told = self.replica_set.proxy.inject_event(REPLICA_SETS, event);
        ensure!(told == 1, "{told} watches were told");
        Ok(())
    }
}

/// An operator whose Lease does not outlast it by much.
async fn short_leader(scene: &Scene, name: &str) -> Result<Operator> {
    let mut of = spec(&scene.cluster, name).await?;
    let flags =
        ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"];
    of.flags = flags.map(str::to_owned).to_vec();
    let mut operator = scene.cluster.start_operator(&of).await?;
    operator.wait_ready().await?;
    Ok(operator)
}

pub(super) fn replica_set() -> Value {
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")});
    of("apps/v1", "ReplicaSet", "web", &json!({"spec": spec}))
}

/// That one, once it has its pod and says so.
pub(super) async fn complete(scene: &Scene) -> Result<ReplicaSet> {
    scene
        .wait_until("the ReplicaSet is complete", DEADLINE, async || {
            let set: ReplicaSet = scene.fetch("web").await?;
            let status = set.status.clone().unwrap_or_default();
            ensure!(status.available_replicas == Some(1), "{status:?}");
            Ok(set)
        })
        .await
}

fn absent() -> Vec<Row> {
    vec![
        row(
            "No controller is installed",
            "sts/web",
            "web: not reconciled: neither statefulset-operator nor kube-controller-manager's statefulset-controller is running",
            |scene| {
                let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "serviceName": "web", "template": template("web")});
                applied(scene, of("apps/v1", "StatefulSet", "web", &json!({"spec": spec}))).boxed_local()
            },
        ),
        row(
            "An operator was stopped, and no other replica runs",
            "cj/web",
            "web: not reconciled: no replica of cronjob-operator holds its Lease",
            |scene| applied(scene, cron_job("web", "Allow", &job("x", 1, 1))).boxed_local(),
        ),
        row(
            "An operator died, and its Lease expired",
            "job/web",
            "web: not reconciled: the Lease of job-operator expired * s ago (last holder *)",
            |scene| applied(scene, job("web", 1, 1)).boxed_local(),
        ),
        row(
            "No namespace controller runs",
            "ns/*",
            "*: not reconciled: neither namespace-operator nor kube-controller-manager's namespace-controller is running",
            |scene| scene.delete_namespace().boxed_local(),
        ),
        row(
            "No garbage collector runs",
            "cm/web",
            "web: not reconciled: neither garbage-collector-operator nor kube-controller-manager's garbage-collector-controller is running",
            |scene| {
                async move {
                    applied(scene, of("v1", "ConfigMap", "web", &json!({}))).await?;
                    scene.kubectl("delete configmap/web --cascade=foreground --wait=false").await.map(drop)
                }
                .boxed_local()
            },
        ),
        row(
            "No TTL controller runs",
            "job/web",
            "web: not reconciled: neither ttl-after-finished-operator nor kube-controller-manager's ttl-after-finished-controller is running",
            |scene| finished(scene).boxed_local(),
        ),
    ]
}

fn hindered() -> Vec<Row> {
    vec![
        row(
            "kube-controller-manager still runs the controller",
            "rc/web",
            "web: reconciled twice: replicationcontroller-operator and kube-controller-manager's replicationcontroller-controller are both running (kube-controller-manager last wrote *…",
            |scene| contested(scene).boxed_local(),
        ),
        row(
            "An operator lacks its role",
            "svc/web",
            "web: endpointslice-operator lacks a permission: User \"system:serviceaccount:kube-system:endpointslice-operator\" cannot create resource \"endpointslices\" in API group \"discovery.k8s.io\" in the namespace \"*\"",
            |scene| {
                async move {
                    applied(scene, of("v1", "Pod", "web", &template("web"))).await?;
                    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
                    applied(scene, of("v1", "Service", "web", &json!({"spec": spec}))).await
                }
                .boxed_local()
            },
        ),
        row(
            "An operator's writes fail",
            "deployment/web",
            "web: deployment-operator failed * times in a row, next retry in * s: …",
            |scene| applied(scene, deployment("web", 1)).boxed_local(),
        ),
        row(
            "An operator's cache is behind its own writes",
            "rs/web",
            "web: replicaset-operator has been waiting for * s for its caches to have version * of pods",
            |scene| scaled(scene).boxed_local(),
        ),
    ]
}

fn unreadable() -> Row {
    row(
        "An operator cannot decode an object",
        "rs/web",
        "web: replicaset-operator cannot decode replicasets.apps */web and uses an older state: …",
        |_| std::future::ready(Ok(())).boxed_local(),
    )
}

fn blind() -> Row {
    row(
        "An operator cannot list or watch",
        "rs/web",
        "web: replicaset-operator cannot list or watch pods: …",
        |scene| applied(scene, replica_set()).boxed_local(),
    )
}

async fn applied(scene: &Scene, object: Value) -> Result<()> {
    scene.apply(&object).await.map(drop)
}

/// A ReplicationController at rest whose status kube-controller-manager wrote, too. It is scaled up and down until that is
/// so: both write the status, and whoever writes a field last takes the other's name off it. A write in the second of its
/// creation does not count, as that may be the second in which the operator acquired its Lease: `managedFields` has no
/// finer times, and what was written before the Lease is no sign of two.
async fn contested(scene: &Scene) -> Result<()> {
    let spec = json!({"replicas": 2, "selector": {"app": "web"}, "template": template("web")});
    applied(scene, of("v1", "ReplicationController", "web", &json!({"spec": spec}))).await?;
    let mut replicas = [3, 2].into_iter().cycle();
    let mut last = (None, Instant::now());
    scene
        .wait_until("kube-controller-manager wrote the status, too", DEADLINE, async || {
            let controller: ReplicationController = scene.fetch("web").await?;
            let status = controller.status.clone().unwrap_or_default();
            let wanted = controller.spec.as_ref().and_then(|spec| spec.replicas);
            let seen = status.observed_generation == controller.metadata.generation;
            let (of_status, pods) =
                ((Some(status.replicas), status.available_replicas), scene.list::<Pod>("app=web").await?);
            // Both may create a pod for the same gap; the one too many changes the status once more.
            let is_at_rest = seen && of_status == (wanted, wanted) && i32::try_from(pods.len()).ok() == wanted;
            ensure!(is_at_rest, "not at rest: {} pods, {status:?}", pods.len());
            // Of two who write the same, the second may still be about to.
            if last.0 != controller.metadata.resource_version {
                last = (controller.metadata.resource_version.clone(), Instant::now());
            }
            ensure!(last.1.elapsed() >= AT_REST, "at rest since {:?}", last.1.elapsed());
            let fields = controller.managed_fields();
            let mut statuses = fields.iter().filter(|entry| entry.subresource.as_deref() == Some("status"));
            let created = &controller.metadata.creation_timestamp;
            if statuses
                .any(|entry| entry.manager.as_deref() == Some("kube-controller-manager") && entry.time > *created)
            {
                return Ok(());
            }
            scene.patch::<ReplicationController>("web", &json!({"spec": {"replicas": replicas.next()}})).await?;
            bail!("at rest without its write: {fields:?}")
        })
        .await
}

/// A ReplicaSet that is scaled once it has a pod.
async fn scaled(scene: &Scene) -> Result<()> {
    applied(scene, replica_set()).await?;
    scene
        .wait_until("there is a pod", DEADLINE, async || {
            ensure!(!scene.list::<Pod>("app=web").await?.is_empty(), "there is none");
            Ok(())
        })
        .await?;
    scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 2}})).await.map(drop)
}

/// A Job that was done long ago, and should have been deleted at once.
async fn finished(scene: &Scene) -> Result<()> {
    applied(scene, with(job("web", 1, 1), &json!({"spec": {"ttlSecondsAfterFinished": 0}}))).await?;
    let at = Timestamp::from_second(1_600_000_000).context("a time")?.to_string();
    let condition = |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": at});
    let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
    let status = json!({"startTime": at, "completionTime": at, "succeeded": 1, "conditions": conditions});
    scene.patch_status::<Job>("web", &json!({"status": status})).await.map(drop)
}
