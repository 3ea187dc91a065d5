//! Operators when something goes wrong between them and the apiserver: answers are lost, writes refused, caches stale;
//! processes are killed between any two writes, and the leader dies or sleeps in the middle of a rollout.
//!
//! Each test has a cluster of its own, as an operator works for a whole cluster, and nobody else is at work there. Whatever
//! happens, in the end there is exactly the right number of pods, and no bound was broken on the way.
//! Left out: faults of the cluster itself, such as dying nodes.

mod daemons;
mod demand;
mod derived;
mod evictions;
mod failover;
mod jobs;
mod kills;
mod lost_answers;
mod minutes;
mod outages;
mod refusals;
mod sets;
mod sleepers;
mod stale_caches;
mod storage;
mod timers;
mod twins;
mod undecodable;

use anyhow::{Result, ensure};
use e2e::cluster::ClusterOptions;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::behind::{Behind, Gate, nth_work};
use crate::support::objects::replicas_of;
use crate::support::sampler::Seen;
use crate::support::{DEADLINE, Scene, template, uid, with_cluster};

const DEPLOYMENT: &str = "deployment-operator";
const REPLICA_SET: &str = "replicaset-operator";
const PODS: &str = "/api/v1/pods";
const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";

/// The pods of the Deployment `web`: with 25 %, one may be missing and one too many.
const REPLICAS: i32 = 4;

/// Runs a test on a cluster where nothing but these operators is at work.
fn with_operators<const N: usize>(
    names: [&str; N],
    test: impl AsyncFnOnce(&Scene, [Behind; N]) -> Result<()>,
) -> Result<()> {
    on_quiet_cluster(async |scene| {
        let operators = try_join_all(names.map(|name| Behind::start(scene, name, name, &[]))).await?;
        let count = operators.len();
        let Ok(operators) = <[Behind; N]>::try_from(operators) else { anyhow::bail!("{count} operators") };
        test(scene, operators).await
    })
}

/// Runs a test on a small cluster without any controller.
fn on_quiet_cluster(test: impl AsyncFnOnce(&Scene) -> Result<()>) -> Result<()> {
    with_cluster(ClusterOptions { nodes: 2, ..ClusterOptions::default() }, test)
}

/// Makes a change of an object whose pods are labelled `app=NAME`, and kills the operator after so many writes of it,
/// before anybody is told of the last of these. Gives whether there were so many, and which pods there were.
async fn kill_at(
    scene: &Scene,
    victim: &mut Behind,
    (name, writes): (&str, u32),
    change: impl Future<Output = Result<()>>,
    settled: impl AsyncFn() -> Result<()>,
) -> Result<(bool, Seen)> {
    let gate = Gate::new();
    let mut is_reached = false;
    victim.proxy.add(nth_work(if writes == 0 { gate.before() } else { gate.after() }, writes));
    let sampler = scene.sample(&format!("app={name}")).await?;
    change.await?;
    tokio::select! {
        () = gate.reached() => is_reached = true,
        done = settled() => done?,
    }
    // A write that comes after all is done is held, too.
    victim.kill_and_restart()?;
    settled().await?;
    Ok((is_reached, sampler.finish(scene).await?))
}

/// Makes `change(n)` again and again, killing the operator before its first write, after its first, after its second
/// and so on, until it takes fewer writes. Gives how many it takes.
async fn kill_at_each(
    scene: &Scene,
    victim: &mut Behind,
    change: impl AsyncFn(u32) -> Result<()>,
    settled: impl AsyncFn(u32) -> Result<()>,
) -> Result<u32> {
    let mut writes = 0;
    loop {
        let now = writes;
        let (is_reached, _) = kill_at(scene, victim, ("none", now), change(now), async || settled(now).await).await?;
        if !is_reached {
            return Ok(writes.saturating_sub(1));
        }
        writes += 1;
    }
}

/// The ReplicaSet `web`.
fn replica_set(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")},
    })
}

/// Creates the Deployment `web` and waits until it is complete.
async fn deploy(scene: &Scene) -> Result<()> {
    let mut web = crate::support::deployment("web", REPLICAS);
    // Few enough for old ReplicaSets to be deleted, too.
    web["spec"]["revisionHistoryLimit"] = json!(2);
    scene.apply(&web).await?;
    complete(scene).await
}

/// Gives `web` another template: in place of [`step`] any number makes a rollout.
async fn start_rollout(scene: &Scene, step: u32) -> Result<()> {
    let template = json!({"metadata": {"annotations": {"step": step.to_string()}}});
    scene.patch::<Deployment>("web", &json!({"spec": {"template": template}})).await.map(drop)
}

/// One rollout of `web` from beginning to end, with `meanwhile` in its middle; an error if it ever broke a bound.
async fn roll_out(scene: &Scene, step: u32, meanwhile: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let sampler = scene.sample("app=web").await?;
    start_rollout(scene, step).await?;
    meanwhile().await?;
    complete(scene).await?;
    let seen = sampler.finish(scene).await?;
    ensure!(seen.most_specified <= REPLICAS + 1, "{} pods were asked for", seen.most_specified);
    ensure!(seen.most_excess == 0, "a ReplicaSet had {} pods more than it was told to have", seen.most_excess);
    ensure!(seen.least_ready >= 3, "only {} pods were ready", seen.least_ready);
    ensure!(seen.pods.len() == 8, "{} pods for four old and four new ones", seen.pods.len());
    Ok(())
}

/// Waits until `web` is rolled out, and every ReplicaSet has the pods it asks for and says so.
async fn complete(scene: &Scene) -> Result<()> {
    scene
        .wait_until("the Deployment is rolled out", DEADLINE, async || {
            let web: Deployment = scene.fetch("web").await?;
            let (status, pods) = (web.status.unwrap_or_default(), scene.list::<Pod>("app=web").await?.len());
            let counts = [status.replicas, status.updated_replicas, status.available_replicas];
            let is_observed = status.observed_generation == web.metadata.generation;
            ensure!(is_observed && counts == [Some(REPLICAS); 3], "{status:?}");
            ensure!(i32::try_from(pods)? == REPLICAS, "{pods} pods");
            scene.list::<ReplicaSet>("app=web").await?.iter().try_for_each(check_complete)
        })
        .await
}

/// Waits until the ReplicaSet `web` has the pods it asks for and says so.
async fn complete_set(scene: &Scene) -> Result<()> {
    scene
        .wait_until("the ReplicaSet is complete", DEADLINE, async || {
            let set: ReplicaSet = scene.fetch("web").await?;
            let pods = scene.list::<Pod>("app=web").await?.len();
            ensure!(i32::try_from(pods)? == replicas_of(&set), "{pods} pods");
            check_complete(&set)
        })
        .await
}

fn check_complete(set: &ReplicaSet) -> Result<()> {
    let (asked, status) = (replicas_of(set), set.status.clone().unwrap_or_default());
    let is_observed = status.observed_generation == set.metadata.generation;
    let is_complete = status.replicas == asked && status.available_replicas.unwrap_or(0) == asked;
    ensure!(is_observed && is_complete, "{} asks for {asked} pods: {status:?}", set.name_any());
    Ok(())
}

/// Lets one more change pass from the Deployment through its ReplicaSets and back: whatever an operator still had in mind
/// would have come by then. An error if a pod came or went.
async fn stays(scene: &Scene) -> Result<()> {
    let before = pods(scene).await?;
    scene.patch::<Deployment>("web", &json!({"spec": {"minReadySeconds": 1}})).await?;
    scene
        .wait_until("the ReplicaSet has the minReadySeconds", DEADLINE, async || {
            let sets: Vec<ReplicaSet> = scene.list("app=web").await?;
            let seconds = |set: &ReplicaSet| set.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
            ensure!(sets.iter().any(|set| replicas_of(set) > 0 && seconds(set) == Some(1)), "{sets:?}");
            Ok(())
        })
        .await?;
    complete(scene).await?;
    check_same(&before, &pods(scene).await?)
}

/// As [`stays`], for a ReplicaSet of its own.
async fn stays_set(scene: &Scene) -> Result<()> {
    let before = pods(scene).await?;
    scene.patch::<ReplicaSet>("web", &json!({"spec": {"minReadySeconds": 1}})).await?;
    complete_set(scene).await?;
    check_same(&before, &pods(scene).await?)
}

fn check_same(before: &[String], after: &[String]) -> Result<()> {
    ensure!(before == after, "pods changed from {before:?} to {after:?}");
    Ok(())
}

/// The uids of the pods, in order.
async fn pods(scene: &Scene) -> Result<Vec<String>> {
    let mut uids: Vec<String> = scene.list::<Pod>("app=web").await?.iter().map(uid).collect();
    uids.sort();
    Ok(uids)
}
