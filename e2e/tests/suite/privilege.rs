//! Each operator may do what it does, and nothing else.
//!
//! `privilege/<operator>.rs` is the life of an operator: all that it ever does, and which others it needs for that; and
//! what a test of shadows changes for it. The build script finds these files.
//! Left out: rights that no request shows, which `e2e::rbac` knows.

use std::collections::BTreeSet;
use std::fmt::Debug;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{ClusterOptions, kubelet};
use e2e::kubectl::kustomize;
use e2e::operator::Operator;
use e2e::rbac::{self, Usage};
use futures::future::{LocalBoxFuture, try_join_all};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::clusters::{manifests, spec};
use crate::support::objects::is_active;
use crate::support::scene::Namespaced;
use crate::support::{DEADLINE, Scene, on_shared_cluster, operators, start_operators, template, with_cluster};

/// Changes an object, and says how the write that repairs it begins.
type Tamper = for<'a> fn(&'a Scene) -> LocalBoxFuture<'a, Result<String>>;

/// The work of an operator from beginning to end.
struct Life {
    operator: &'static str,
    /// The other operators without which it could not.
    needs: &'static [&'static str],
    live: for<'a> fn(&'a Scene) -> LocalBoxFuture<'a, Result<()>>,
    /// Changes an object of `shadow::objects`. Some operators write nothing then.
    tamper: Option<Tamper>,
}

include!(concat!(env!("OUT_DIR"), "/lives.rs"));

/// How many operators are looked at on one cluster: there are two replicas of each, and of fifty that would be too many.
const GROUP: usize = 8;

/// Changes the label that selects an object, waits until it is nobody's, and changes it back.
async fn relabel<K: Namespaced>(scene: &Scene, name: &str, app: &str) -> Result<()> {
    scene.patch::<K>(name, &json!({"metadata": {"labels": {"app": app}}})).await?;
    scene
        .wait_until(&format!("{name} is released"), DEADLINE, async || {
            let owners = scene.fetch::<K>(name).await?.owner_references().to_vec();
            ensure!(owners.is_empty(), "{owners:?}");
            Ok(())
        })
        .await
}

/// Waits until an object has the finalizer, also after somebody took it away.
async fn protected_again<K>(scene: &Scene, objects: &Api<K>, name: &str, finalizer: &str) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    scene.protected(objects, name, finalizer).await?;
    unprotect(objects, name).await?;
    scene.protected(objects, name, finalizer).await
}

/// Takes all finalizers from an object.
async fn unprotect<K>(objects: &Api<K>, name: &str) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let unprotected = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    objects.patch(name, &PatchParams::default(), &unprotected).await.map(drop).context("take the finalizer")
}

/// The life of a ReplicaSet or a ReplicationController: adopting, releasing, creating, deleting, being refused for long
/// enough that one event is counted up, and a pod that its node rejects.
async fn live_as<K: Namespaced>(scene: &Scene, set: &Value) -> Result<()> {
    let (kind, app) = (K::kind(&()), set["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    let mut orphan = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": app, "labels": {"app": app}}});
    orphan["spec"] = template(&app)["spec"].clone();
    scene.apply(&orphan).await?;
    scene.apply(set).await?;
    scene
        .wait_until("the pod is adopted", DEADLINE, async || {
            let pod: Pod = scene.fetch(&app).await?;
            ensure!(!pod.owner_references().is_empty(), "nobody owns it");
            Ok(())
        })
        .await?;
    relabel::<Pod>(scene, &app, "free").await?;
    scene.kubectl(&format!("scale {kind}/{app} --replicas=1")).await?;
    scene.limit_pods("none", 0).await?;
    scene.kubectl(&format!("scale {kind}/{app} --replicas=4")).await?;
    // Upstream counts up from the eleventh refusal on, and doubles its back-off with each.
    scene
        .wait_until("an event is counted up", 3 * DEADLINE, async || {
            let events: Vec<Event> = scene.events("FailedCreate").await?;
            let counted = events.iter().filter(|event| event.involved_object.kind.as_deref() == Some(&*kind));
            let most = counted.filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    scene.kubectl("delete resourcequota/none").await?;
    reject_a_pod::<K>(scene, &app).await
}

/// A node ends one of these pods, which have not started, as a kubelet does that does not admit it.
async fn reject_a_pod<K: Namespaced>(scene: &Scene, app: &str) -> Result<()> {
    let waiting = json!({"metadata": {"annotations": {"pods.e2e/becomes": "never-started"}}});
    scene.patch::<K>(app, &json!({"spec": {"replicas": 5, "template": waiting}})).await?;
    let pods = async || scene.list::<Pod>(&format!("app={app}")).await;
    let rejected = scene
        .wait_until("a pod that a node has taken and not started", DEADLINE, async || {
            let is_waiting = |pod: &Pod| {
                let status = pod.status.clone().unwrap_or_default();
                status.start_time.is_some() && status.phase.as_deref() == Some("Pending")
            };
            pods().await?.into_iter().find(is_waiting).context("there is none")
        })
        .await?;
    let status = json!({"phase": "Failed", "reason": "OutOfcpu", "containerStatuses": null});
    scene.patch_status::<Pod>(&rejected.name_any(), &json!({"status": status})).await?;
    scene
        .wait_until("another pod has come in its place", DEADLINE, async || {
            let active = pods().await?.iter().filter(|pod| is_active(pod)).count();
            ensure!(active == 5, "{active} pods");
            Ok(())
        })
        .await
}

/// Everyone's second replica: only who stands by watches the Lease.
async fn start_standbys(scene: &Scene, operators: &[&str]) -> Result<Vec<Operator>> {
    try_join_all(operators.iter().map(async |operator| {
        let mut of = spec(&scene.cluster, operator).await?;
        of.name.push_str("-standby");
        let mut standby = scene.cluster.start_operator(&of).await?;
        standby.wait_ready().await?;
        Ok(standby)
    }))
    .await
}

/// Each life in a namespace of its own, all at the same time.
async fn live_all<'a>(scene: &Scene, lives: impl Iterator<Item = &'a Life>) -> Result<()> {
    let lived = lives.enumerate().map(async |(number, Life { operator, live, .. })| {
        let own = scene.beside(&number.to_string()).await?;
        live(&own).await.with_context(|| format!("the life of {operator}"))
    });
    try_join_all(lived).await.map(drop)
}

/// Every life that kube-controller-manager can do the work of.
pub(crate) async fn live_every_life(scene: &Scene) -> Result<()> {
    live_all(scene, LIVES.iter().filter(|life| !facts::needs_cloud(life.operator))).await
}

/// Changes an object for each operator; gives how the difference that each finds begins.
pub(crate) async fn tamper(scene: &Scene) -> Result<Vec<String>> {
    let mut expected = Vec::new();
    for Life { operator, tamper, .. } in LIVES {
        if let Some(tamper) = tamper {
            let write = tamper(scene).await.with_context(|| format!("tamper for {operator}"))?;
            expected.push(format!("{operator} {write}"));
        }
    }
    Ok(expected)
}

/// The name of an object that this selector selects.
async fn first<K: Namespaced>(scene: &Scene, selector: &str) -> Result<String> {
    let found = scene.list::<K>(selector).await?;
    ensure!(!found.is_empty(), "nothing has {selector}");
    Ok(found[0].name_any())
}

/// Creates a node whose kubelet runs. Without one it would become Unknown just when all else has come to rest.
async fn add_node(scene: &Scene, name: &str, annotations: &Value, spec: &Value) -> Result<()> {
    let mut node = kubelet(true);
    node["metadata"]["name"] = json!(name);
    node["metadata"]["annotations"] = annotations.clone();
    node["spec"] = spec.clone();
    let nodes: Api<Node> = Api::all(scene.client.clone());
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    Ok(())
}

async fn check_roles(scene: &Scene, lives: &[Life]) -> Result<()> {
    let examined: Vec<&str> = lives.iter().map(|life| life.operator).collect();
    let needed = lives.iter().flat_map(|life| life.needs.iter().copied());
    let at_work: BTreeSet<&str> = examined.iter().copied().chain(needed).collect();
    let _leaders = start_operators(&scene.cluster, at_work).await?;
    let _standbys = start_standbys(scene, &examined).await?;
    live_all(scene, lives.iter()).await?;
    scene
        .wait_until("what was asked is what the roles say", DEADLINE, async || {
            let usage = Usage::read(&std::fs::read_to_string(scene.cluster.audit_log()?)?)?;
            let mut complaints = Vec::new();
            for operator in &examined {
                let grants = rbac::grants(&kustomize(&manifests(operator)).await?);
                complaints.extend(usage.compare(operator, &grants));
            }
            ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
            Ok(())
        })
        .await
}

#[test]
fn each_role_allows_what_its_operator_does_and_nothing_else() -> Result<()> {
    for group in LIVES.chunks(GROUP) {
        let options = ClusterOptions { audit: true, audit_policy: rbac::AUDIT_POLICY, ..ClusterOptions::default() };
        with_cluster(options.with_gated_kinds(), async |scene| check_roles(scene, group).await)?;
    }
    Ok(())
}

#[test]
fn the_apiserver_takes_every_manifest() -> Result<()> {
    on_shared_cluster(async |scene| {
        let applied = async |folder: &str| {
            let folder = manifests(folder);
            let folder = folder.to_str().context("a path that is no text")?;
            scene
                .cluster
                .kubectl(["apply", "--server-side", "--dry-run=server", "--force-conflicts", "-k", folder])
                .await
        };
        let all = applied("").await?;
        for operator in operators() {
            // Those that need a cloud are installed by themselves.
            let own = if facts::needs_cloud(operator) { applied(operator).await? } else { String::new() };
            let answer = if own.is_empty() { &all } else { &own };
            assert!(answer.contains(&format!("deployment.apps/{operator} serverside-applied")), "{answer}");
        }
        Ok(())
    })
}
