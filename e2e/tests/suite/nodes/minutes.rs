//! The apiserver is away for minutes; and a thousand pods whose owner references, labels and nodes' Leases are changed at
//! random, under kube-controller-manager and under the operators: how many are lost in the first minute.
//! `make e2e` leaves this module out, and `make e2e-minutes` runs it.
//!
//! Left out: owners and nodes that somebody deletes by mistake. That is a user's change.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::Operator;
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{EVICTION, FLAGS, LIFECYCLE, NOT_READY, UNREACHABLE, node, nodes, outages, pods_on, set_kubelets};
use crate::support::behind::Behind;
use crate::support::clusters::spec;
use crate::support::{DEADLINE, Scene, deployment, start_operators, with_cluster};

const COLLECTOR: &str = "garbage-collector-operator";
/// The collector has no brake without it.
const BRAKE: [&str; 1] = ["--mass-deletion-share=0.03"];
/// The operators that this takes, and that need no flags.
const OTHERS: [&str; 5] =
    ["deployment-operator", "namespace-operator", "pod-garbage-collector-operator", "replicaset-operator", EVICTION];
const NODES: u32 = 20;
/// The nodes whose Leases are changed: less than the threshold of each zone.
const CHANGED_NODES: u32 = 8;
/// One of the zones, whole: of a part of a small one nothing is evicted.
const ZONE: [u32; 7] = [1, 4, 7, 10, 13, 16, 19];
const APPS: u32 = 20;
const OF_AN_APP: i32 = 50;
const PODS: usize = 1000;
/// A tenth of them: 3 % at once, 3 % within the minute, and those whose owners were really changed.
const MOST_LOST: usize = PODS / 10;
const MINUTE: Duration = Duration::from_secs(60);
const AT_ONCE: usize = 16;

fn app(name: &str, replicas: i32) -> Value {
    let mut app = deployment(name, replicas);
    let at_once = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0});
    app["spec"]["template"]["spec"]["tolerations"] = json!([at_once(NOT_READY), at_once(UNREACHABLE)]);
    app
}

/// The same numbers in each run.
fn numbers() -> impl Iterator<Item = u64> {
    let step =
        |number: &u64| Some(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(Some(36), step).skip(1).map(|number| number >> 33)
}

/// What becomes of a pod: of ten, four are given another owner, and three the name of another application. With all
/// labels of one it would be that application's own, and too many there, which is a user's change.
fn change(pod: &Pod, others: &[Pod], number: u64) -> Option<Value> {
    match number % 10 {
        0..4 => {
            let mut owners = serde_json::to_value(pod.owner_references()).ok()?;
            owners[0]["uid"] = json!(format!("00000000-0000-4000-8000-{number:012}"));
            Some(json!({"metadata": {"ownerReferences": owners}}))
        }
        4..7 => {
            let other = others.get(usize::try_from(number).ok()? % others.len())?;
            Some(json!({"metadata": {"labels": {"app": other.labels().get("app")}}}))
        }
        _ => None,
    }
}

/// Changes pods and Leases at random, and gives how many pods are gone a minute after the first change.
async fn lost(scene: &Scene) -> Result<usize> {
    try_join_all((0..APPS).map(async |at| scene.apply(&app(&format!("app-{at}"), OF_AN_APP)).await.map(drop))).await?;
    let pods = scene
        .wait_until("all pods run", 3 * DEADLINE, async || {
            let pods: Vec<Pod> = scene.list("").await?;
            let is_running =
                |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
            let running = pods.iter().filter(|pod| is_running(pod)).count();
            ensure!((running, pods.len()) == (PODS, PODS), "{running} of {} pods run", pods.len());
            Ok(pods)
        })
        .await?;

    let began = Instant::now();
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-node-lease");
    let years = ["2020", "2040"].into_iter().cycle();
    let of_nodes = (0..CHANGED_NODES).zip(years).map(async |(number, year)| {
        let renewed = json!({"spec": {"renewTime": format!("{year}-01-01T00:00:00.000000Z")}});
        leases.patch(&node(number), &PatchParams::default(), &Patch::Merge(renewed)).await.map(drop)
    });
    try_join_all(of_nodes).await.context("change Leases")?;
    let changes = pods.iter().zip(numbers()).filter_map(|(pod, number)| Some((pod, change(pod, &pods, number)?)));
    let changed = stream::iter(changes).map(async |(pod, change)| {
        // It may be gone already.
        let patched = scene.api::<Pod>().patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(change)).await;
        match patched {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            patched => patched.map(drop),
        }
    });
    changed.buffer_unordered(AT_ONCE).try_collect::<()>().await.context("change pods")?;

    scene
        .wait_until("a minute is over", 2 * MINUTE, async || {
            ensure!(began.elapsed() >= MINUTE, "{:?}", began.elapsed());
            Ok(())
        })
        .await?;
    let left: Vec<Pod> = scene.list("").await?;
    let stay = left.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let stay: BTreeSet<String> = stay.filter_map(ResourceExt::uid).collect();
    Ok(pods.iter().filter_map(ResourceExt::uid).filter(|uid| !stay.contains(uid)).count())
}

async fn start_all(scene: &Scene) -> Result<Vec<Operator>> {
    let mut started = start_operators(&scene.cluster, OTHERS).await?;
    for (operator, flags) in [(COLLECTOR, &BRAKE[..]), (LIFECYCLE, &FLAGS[..])] {
        let mut with_flags = spec(&scene.cluster, operator).await?;
        with_flags.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let mut operator = scene.cluster.start_operator(&with_flags).await?;
        operator.wait_ready().await?;
        started.push(operator);
    }
    Ok(started)
}

/// While deletions crawl, what a user does goes on as fast as ever, and so does the loss of a zone.
async fn passes_untouched(scene: &Scene) -> Result<()> {
    let user = scene.beside("user").await?;
    user.apply(&app("web", 100)).await?;
    user.rolled_out("web").await?;
    user.kubectl("set env deployment/web STEP=2").await?;
    user.rolled_out("web").await?;
    user.kubectl("scale deployment/web --replicas=50").await?;
    user.wait_until("half of the pods are gone", DEADLINE, async || {
        let pods = user.list::<Pod>("").await?.len();
        ensure!(pods == 50, "{pods} pods");
        Ok(())
    })
    .await?;
    user.delete_namespace().await?;
    user.namespace_gone().await?;

    let lost: BTreeSet<String> = ZONE.map(node).into_iter().collect();
    let on_zone = async || {
        let mut pods: Vec<Pod> = scene.list("").await?;
        pods.retain(|pod| {
            pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_some_and(|on| lost.contains(on))
        });
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        anyhow::Ok(pods.len())
    };
    ensure!(on_zone().await? > 0, "the zone has no pods");
    set_kubelets(scene, ZONE, false).await?;
    scene
        .wait_until("the pods of the zone are evicted", DEADLINE, async || {
            let left = on_zone().await?;
            ensure!(left == 0, "{left} are left");
            Ok(())
        })
        .await
}

/// With the flags that everybody has.
#[test]
fn no_node_is_lost_while_the_apiserver_is_away_for_two_minutes() -> Result<()> {
    with_cluster(ClusterOptions { nodes: outages::NODES, ..ClusterOptions::default() }, async |scene| {
        let lifecycle = Behind::start(scene, LIFECYCLE, LIFECYCLE, &[]).await?;
        let _eviction = Behind::start(scene, EVICTION, EVICTION, &[]).await?;
        pods_on(scene, 0..outages::NODES, 0).await?;
        outages::apiserver_is_away(scene, &lifecycle, 2 * MINUTE).await
    })
}

/// As above.
#[test]
fn no_node_is_lost_while_etcd_stands_still_for_a_minute() -> Result<()> {
    with_cluster(ClusterOptions { nodes: outages::NODES, ..ClusterOptions::default() }, async |scene| {
        let lifecycle = Behind::start(scene, LIFECYCLE, LIFECYCLE, &[]).await?;
        let _eviction = Behind::start(scene, EVICTION, EVICTION, &[]).await?;
        pods_on(scene, 0..outages::NODES, 0).await?;
        outages::etcd_stands_still(scene, &lifecycle, MINUTE).await
    })
}

#[test]
fn of_a_thousand_pods_changed_at_random_few_are_lost_and_what_a_user_does_is_not_held_up() -> Result<()> {
    let flags = FLAGS.map(str::to_owned).to_vec();
    let controller_manager = Some(ControllerManager { flags, ..ControllerManager::all() });
    let mut upstream = 0;
    with_cluster(ClusterOptions { controller_manager, ..nodes(NODES) }, async |scene| {
        upstream = lost(scene).await?;
        Ok(())
    })?;
    with_cluster(ClusterOptions { has_node_lifecycle: true, ..nodes(NODES) }, async |scene| {
        let _operators = start_all(scene).await?;
        let ours = lost(scene).await?;
        eprintln!("of {PODS} pods were lost: {upstream} under kube-controller-manager, {ours} under the operators");
        ensure!(ours <= MOST_LOST, "{ours} of {PODS} pods are lost");
        passes_untouched(scene).await
    })
}
