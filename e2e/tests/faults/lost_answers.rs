//! A write happens and its answer does not come. Whoever repeats it has done it twice.

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::Method;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde_json::json;

use crate::scene::{DEPLOYMENT, REPLICA_SET, Scene, deployment, each, new_image, replica_set};

#[tokio::test]
async fn a_replica_set_has_no_pod_too_many_when_answers_to_creates_are_lost() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET]).await?;
    let behind = scene.behind(REPLICA_SET)?;
    let creates = Rule::new(Action::LoseResponse).method(Method::POST).path("**/pods");
    behind.proxy.add(creates.when(each(3)).always());
    scene.apply(&replica_set(20)).await?;
    scene.wait_replica_set("web").await?;
    scene.stays_replica_set("web").await?;
    scene.check_bounds(0, 20, 0).await?;
    let (creates, lost) = (behind.count(&Method::POST, "**/pods"), behind.lost("**/pods"));
    ensure!((creates, lost) == (20, 6), "{creates} creates for 20 pods, of which {lost} were not answered");
    Ok(())
}

#[tokio::test]
async fn no_pod_too_many_goes_when_answers_to_deletes_are_lost() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET]).await?;
    scene.apply(&replica_set(20)).await?;
    scene.wait_replica_set("web").await?;
    let from = scene.timeline.catch_up().await?;
    let behind = scene.behind(REPLICA_SET)?;
    behind.proxy.add(Rule::new(Action::LoseResponse).method(Method::DELETE).path("**/pods/*").when(each(2)).always());
    scene.patch_spec::<ReplicaSet>("web", &json!({ "replicas": 7 })).await?;
    scene.wait_replica_set("web").await?;
    scene.stays_replica_set("web").await?;
    scene.check_bounds(from, 20, 7).await?;
    let lost = behind.lost("**/pods/*");
    ensure!(lost >= 6, "only {lost} answers were lost");
    Ok(())
}

#[tokio::test]
async fn a_rollout_keeps_its_bounds_when_answers_to_the_deployment_operator_are_lost() -> Result<()> {
    let scene = Scene::start(&[REPLICA_SET, DEPLOYMENT]).await?;
    let behind = scene.behind(DEPLOYMENT)?;
    // The creation of each ReplicaSet, and of the rest every other write.
    behind.proxy.add(Rule::new(Action::LoseResponse).method(Method::POST).path("**/replicasets").always());
    behind
        .proxy
        .add(Rule::new(Action::LoseResponse).method(Method::PATCH).path("**/replicasets/*").when(each(2)).always());
    behind.proxy.add(
        Rule::new(Action::LoseResponse).method(Method::PATCH).path("**/deployments/*/status").when(each(2)).always(),
    );
    scene.apply(&deployment(4)).await?;
    scene.wait_rollout("web").await?;
    let from = scene.timeline.catch_up().await?;
    scene.patch_spec::<Deployment>("web", &new_image(1)).await?;
    scene.wait_rollout("web").await?;
    scene.stays_deployment("web").await?;
    scene.check_bounds(from, 5, 3).await?;
    let sets = scene.replica_sets().await?.len();
    ensure!(sets == 2, "{sets} replica sets of two templates");
    let status = scene.deployment("web").await?.status.unwrap_or_default();
    ensure!(status.collision_count.is_none(), "an own replica set was taken for another's: {status:?}");
    let creates = behind.count(&Method::POST, "**/replicasets");
    ensure!(creates == 2, "{creates} creates of two replica sets");
    ensure!(behind.lost("**/deployments/*/status") > 0, "no status was lost");
    ensure!(behind.lost("**/replicasets/*") > 0, "no scaling was lost");
    Ok(())
}
