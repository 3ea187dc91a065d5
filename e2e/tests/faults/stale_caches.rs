//! Watches that say nothing, break, or cannot go on where they were.

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::{Method, StatusCode};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde_json::json;

use crate::scene::{Behind, DEPLOYMENT, REPLICA_SET, Scene, deployment, new_image, replica_set};

const PODS: &str = "/api/v1/pods";
const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";

/// How many times this was watched from the start (with all that is there) and from where a watch had ended.
fn watches(behind: &Behind, path: &str) -> (usize, usize) {
    let requests = behind.proxy.requests();
    let queries = || requests.iter().filter(|request| request.path == path).map(|request| request.query.as_str());
    let lists = queries().filter(|query| query.contains("sendInitialEvents=true")).count();
    (lists, queries().count() - lists)
}

#[tokio::test]
async fn a_scale_up_makes_no_pod_twice_while_pods_are_not_seen() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET]).await?;
    scene.apply(&replica_set(5)).await?;
    scene.wait_replica_set("web").await?;
    let from = scene.timeline.catch_up().await?;
    let behind = scene.behind(REPLICA_SET)?;
    behind.proxy.freeze_watches(PODS);
    let (lists, _) = watches(behind, PODS);
    scene.patch_spec::<ReplicaSet>("web", &json!({ "replicas": 10 })).await?;
    scene.wait("the new pods are there", async || Ok((scene.pods().await?.len() >= 10).then_some(()))).await?;
    // Each of these asks for a sync.
    for seconds in 2..5 {
        scene.patch_spec::<ReplicaSet>("web", &json!({ "minReadySeconds": seconds })).await?;
    }
    scene
        .wait("the operator asks for all pods anew", async || Ok((watches(behind, PODS).0 > lists).then_some(())))
        .await?;
    behind.proxy.thaw_watches();
    scene.wait_replica_set("web").await?;
    scene.stays_replica_set("web").await?;
    scene.check_bounds(from, 10, 5).await?;
    let creates = behind.count(&Method::POST, "**/pods");
    ensure!(creates == 10, "{creates} creates for 10 pods");
    Ok(())
}

#[tokio::test]
async fn a_rollout_keeps_its_bounds_while_replica_sets_and_pods_are_not_seen() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET, DEPLOYMENT]).await?;
    scene.apply(&deployment(4)).await?;
    scene.wait_rollout("web").await?;
    let from = scene.timeline.catch_up().await?;
    let before: Vec<(usize, usize)> = scene.operators.iter().map(|it| watches(it, REPLICA_SETS)).collect();
    let behind = scene.behind(DEPLOYMENT)?;
    behind.proxy.freeze_watches(REPLICA_SETS);
    scene.behind(REPLICA_SET)?.proxy.freeze_watches(PODS);
    scene.patch_spec::<Deployment>("web", &new_image(1)).await?;
    scene
        .wait("the silent watch is given up", async || Ok((watches(behind, REPLICA_SETS) > before[1]).then_some(())))
        .await?;
    for behind in &scene.operators {
        behind.proxy.thaw_watches();
    }
    scene.wait_rollout("web").await?;
    scene.stays_deployment("web").await?;
    scene.check_bounds(from, 5, 3).await?;
    let sets = scene.replica_sets().await?.len();
    ensure!(sets == 2, "{sets} replica sets of two templates");
    Ok(())
}

#[tokio::test]
async fn a_rollout_goes_on_when_watches_break_again_and_again() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET, DEPLOYMENT]).await?;
    scene.apply(&deployment(4)).await?;
    scene.wait_rollout("web").await?;
    for image in 1..4 {
        let from = scene.timeline.catch_up().await?;
        scene.patch_spec::<Deployment>("web", &new_image(image)).await?;
        let mut cuts = 0;
        scene
            .wait("every watch broke in the middle of the rollout", async || {
                cuts += scene.operators.iter().map(|behind| behind.proxy.cut_watches("**")).sum::<usize>();
                Ok((cuts >= 5).then_some(()))
            })
            .await?;
        scene.wait_rollout("web").await?;
        scene.check_bounds(from, 5, 3).await?;
    }
    scene.stays_deployment("web").await
}

#[tokio::test]
async fn what_happened_before_a_watch_expired_is_listed_anew() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET]).await?;
    scene.apply(&replica_set(5)).await?;
    scene.wait_replica_set("web").await?;
    let from = scene.timeline.catch_up().await?;
    let behind = scene.behind(REPLICA_SET)?;
    let (lists, _) = watches(behind, PODS);
    let expired = Rule::new(Action::reply(StatusCode::GONE)).method(Method::GET).path(PODS);
    behind.proxy.add(expired.when(|seen| seen.query.contains("resourceVersion=")));
    behind.proxy.freeze_watches(PODS);
    scene.patch_spec::<ReplicaSet>("web", &json!({ "replicas": 8 })).await?;
    scene.wait("the new pods are there", async || Ok((scene.pods().await?.len() >= 8).then_some(()))).await?;
    // What was held back is lost with the connection.
    behind.proxy.cut_watches(PODS);
    behind.proxy.thaw_watches();
    scene.wait_replica_set("web").await?;
    scene.stays_replica_set("web").await?;
    scene.check_bounds(from, 8, 5).await?;
    let gone = behind.proxy.requests().iter().filter(|it| it.status == Some(StatusCode::GONE)).count();
    let (after, _) = watches(behind, PODS);
    ensure!(gone == 1 && after == lists + 1, "{gone} watches expired, and {after} lists after {lists}");
    Ok(())
}
