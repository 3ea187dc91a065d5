//! A write happens and its answer does not come. Whoever repeats it has done it twice.

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::Method;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde_json::json;

use super::{DEPLOYMENT, REPLICA_SET, complete_set, deploy, replica_set, roll_out, stays, stays_set, with_operators};
use crate::support::behind::each;

#[test]
fn a_replica_set_has_no_pod_too_many_or_too_few_when_answers_are_lost() -> Result<()> {
    with_operators([REPLICA_SET], async |scene, [behind]| {
        let sampler = scene.sample("app=web").await?;
        let creates = Rule::new(Action::LoseResponse).method(Method::POST).path("**/pods");
        behind.proxy.add(creates.when(each(3)).always());
        scene.apply(&replica_set(20)).await?;
        complete_set(scene).await?;
        let seen = sampler.finish(scene).await?;
        ensure!((seen.most_excess, seen.pods.len()) == (0, 20), "{seen:?}");
        let (creates, lost) = (behind.count(&Method::POST, "**/pods"), behind.lost("**/pods"));
        ensure!((creates, lost) == (20, 6), "{creates} creates for 20 pods, of which {lost} were not answered");

        let sampler = scene.sample("app=web").await?;
        let deletes = Rule::new(Action::LoseResponse).method(Method::DELETE).path("**/pods/*");
        behind.proxy.add(deletes.when(each(2)).always());
        scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 7}})).await?;
        complete_set(scene).await?;
        stays_set(scene).await?;
        let seen = sampler.finish(scene).await?;
        ensure!((seen.least_ready, seen.pods.len()) == (7, 20), "{seen:?}");
        let lost = behind.lost("**/pods/*");
        ensure!(lost >= 6, "only {lost} answers were lost");
        Ok(())
    })
}

#[test]
fn a_rollout_keeps_its_bounds_when_answers_to_the_deployment_operator_are_lost() -> Result<()> {
    with_operators([DEPLOYMENT, REPLICA_SET], async |scene, [behind, _replica_set]| {
        let lose = || Rule::new(Action::LoseResponse).always();
        // The creation of each ReplicaSet, and of the rest every other write.
        behind.proxy.add(lose().method(Method::POST).path("**/replicasets"));
        behind.proxy.add(lose().method(Method::PATCH).path("**/replicasets/*").when(each(2)));
        behind.proxy.add(lose().method(Method::PATCH).path("**/deployments/*/status").when(each(2)));
        deploy(scene).await?;
        roll_out(scene, 1, async || Ok(())).await?;
        stays(scene).await?;
        let sets = scene.list::<ReplicaSet>("app=web").await?.len();
        ensure!(sets == 2, "{sets} replica sets of two templates");
        let status = scene.fetch::<Deployment>("web").await?.status.unwrap_or_default();
        ensure!(status.collision_count.is_none(), "an own replica set was taken for another's: {status:?}");
        let creates = behind.count(&Method::POST, "**/replicasets");
        ensure!(creates == 2, "{creates} creates of two replica sets");
        ensure!(behind.lost("**/deployments/*/status") > 0, "no status was lost");
        ensure!(behind.lost("**/replicasets/*") > 0, "no scaling was lost");
        Ok(())
    })
}
