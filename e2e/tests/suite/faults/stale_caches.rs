//! Watches that say nothing, come late, or cannot go on where they were; and writes that arrive late.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::{Method, StatusCode};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{
    DEPLOYMENT, PODS, REPLICA_SET, REPLICA_SETS, complete_set, deploy, replica_set, roll_out, stays, stays_set,
    with_operators,
};
use crate::support::{DEADLINE, Scene};

/// Waits until there are so many pods, whoever knows of them.
async fn exist(scene: &Scene, pods: usize) -> Result<()> {
    scene
        .wait_until(&format!("there are {pods} pods"), DEADLINE, async || {
            let now = scene.list::<Pod>("app=web").await?.len();
            ensure!(now >= pods, "{now}");
            Ok(())
        })
        .await
}

#[test]
fn a_scale_up_makes_no_pod_twice_while_pods_are_not_seen() -> Result<()> {
    with_operators([REPLICA_SET], async |scene, [behind]| {
        scene.apply(&replica_set(5)).await?;
        complete_set(scene).await?;
        let sampler = scene.sample("app=web").await?;
        behind.proxy.freeze_watches(PODS);
        let lists = behind.lists(PODS);
        scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 10}})).await?;
        exist(scene, 10).await?;
        // Each of these asks for a sync.
        for seconds in 2..5 {
            scene.patch::<ReplicaSet>("web", &json!({"spec": {"minReadySeconds": seconds}})).await?;
        }
        scene
            .wait_until("the operator asks for all pods anew", DEADLINE, async || {
                ensure!(behind.lists(PODS) > lists, "it does not");
                Ok(())
            })
            .await?;
        behind.proxy.thaw_watches();
        complete_set(scene).await?;
        stays_set(scene).await?;
        let seen = sampler.finish(scene).await?;
        ensure!((seen.most_excess, seen.least_ready, seen.pods.len()) == (0, 5, 10), "{seen:?}");
        let creates = behind.count(&Method::POST, "**/pods");
        ensure!(creates == 10, "{creates} creates for 10 pods");
        Ok(())
    })
}

#[test]
fn a_rollout_keeps_its_bounds_while_replica_sets_and_pods_are_not_seen() -> Result<()> {
    with_operators([DEPLOYMENT, REPLICA_SET], async |scene, [deployment, replica_set]| {
        deploy(scene).await?;
        let before = (deployment.lists(REPLICA_SETS), deployment.rewatches(REPLICA_SETS));
        deployment.proxy.freeze_watches(REPLICA_SETS);
        replica_set.proxy.freeze_watches(PODS);
        roll_out(scene, 1, async || {
            scene
                .wait_until("the silent watch is given up", DEADLINE, async || {
                    let now = (deployment.lists(REPLICA_SETS), deployment.rewatches(REPLICA_SETS));
                    ensure!(now > before, "{now:?}");
                    Ok(())
                })
                .await?;
            deployment.proxy.thaw_watches();
            replica_set.proxy.thaw_watches();
            Ok(())
        })
        .await?;
        let sets = scene.list::<ReplicaSet>("app=web").await?.len();
        ensure!(sets == 2, "{sets} replica sets of two templates");
        stays(scene).await
    })
}

#[test]
fn a_rollout_keeps_its_bounds_when_watches_or_writes_are_late() -> Result<()> {
    with_operators([DEPLOYMENT, REPLICA_SET], async |scene, [deployment, replica_set]| {
        deploy(scene).await?;
        let late = Duration::from_millis(300);
        // Each of the caches that a decision rests on once later than all others.
        for (step, (behind, path)) in
            (1..).zip([(&deployment, "**"), (&deployment, REPLICA_SETS), (&replica_set, "**"), (&replica_set, PODS)])
        {
            ensure!(behind.proxy.delay_watches(path, late) > 0, "no watch of {path}");
            roll_out(scene, step, async || Ok(())).await?;
            behind.proxy.delay_watches(path, Duration::ZERO);
        }
        // Writes that were begun together arrive in another order.
        for behind in [&deployment, &replica_set] {
            behind.strike_work(&Action::Delay(late));
        }
        roll_out(scene, 5, async || Ok(())).await?;
        stays(scene).await
    })
}

#[test]
fn what_happened_before_a_watch_expired_is_listed_anew() -> Result<()> {
    with_operators([REPLICA_SET], async |scene, [behind]| {
        scene.apply(&replica_set(5)).await?;
        complete_set(scene).await?;
        let sampler = scene.sample("app=web").await?;
        let lists = behind.lists(PODS);
        let expired = Rule::new(Action::reply(StatusCode::GONE)).method(Method::GET).path(PODS);
        behind.proxy.add(expired.when(|seen| seen.query.contains("resourceVersion=")));
        behind.proxy.freeze_watches(PODS);
        scene.patch::<ReplicaSet>("web", &json!({"spec": {"replicas": 8}})).await?;
        exist(scene, 8).await?;
        // The events on hold are lost with the connection.
        behind.proxy.cut_watches(PODS);
        behind.proxy.thaw_watches();
        complete_set(scene).await?;
        stays_set(scene).await?;
        let seen = sampler.finish(scene).await?;
        ensure!((seen.most_excess, seen.least_ready, seen.pods.len()) == (0, 5, 8), "{seen:?}");
        let gone = behind.proxy.requests().iter().filter(|it| it.status == Some(StatusCode::GONE)).count();
        let after = behind.lists(PODS);
        ensure!(gone == 1 && after == lists + 1, "{gone} watches expired, and {after} lists after {lists}");
        Ok(())
    })
}
