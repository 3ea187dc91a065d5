//! The leader is gone, or only asleep, in the middle of a rollout.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;

use crate::scene::{DEADLINE, DEPLOYMENT, Gate, REPLICA_SET, Scene, deployment, is_work, new_image, nth_work};

const REPLICAS: [&str; 2] = ["replicaset-operator-a", "replicaset-operator-b"];
/// As upstream's, but seconds instead of a quarter of a minute.
const LEASE: [&str; 3] =
    ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"];

/// A Deployment that is rolled out, under two replicas of the ReplicaSet operator.
async fn two_replicas() -> Result<Scene> {
    let mut scene = Scene::without_operators(&[REPLICA_SET, DEPLOYMENT]).await?;
    scene.add_operator(DEPLOYMENT, DEPLOYMENT, &[]).await?;
    for replica in REPLICAS {
        scene.add_operator(REPLICA_SET, replica, &LEASE).await?;
    }
    scene.apply(&deployment(4)).await?;
    scene.wait_rollout("web").await?;
    Ok(scene)
}

/// Starts a rollout, and gives the name of the leader once it is at its third write.
async fn leader_at_third_write(scene: &Scene) -> Result<&'static str> {
    let gates = [Gate::new(), Gate::new()];
    for (replica, gate) in REPLICAS.into_iter().zip(&gates) {
        scene.behind(replica)?.proxy.add(nth_work(gate.after(), 3));
    }
    scene.patch_spec::<Deployment>("web", &new_image(1)).await?;
    scene
        .wait("the leader makes its third write", async || {
            Ok(REPLICAS.into_iter().zip(&gates).find(|(_, gate)| gate.is_reached()).map(|(replica, _)| replica))
        })
        .await
}

fn work_of(scene: &Scene, replica: &str) -> Result<usize> {
    Ok(scene.behind(replica)?.proxy.writes("**").iter().filter(|write| is_work(&write.path)).count())
}

#[tokio::test]
async fn another_replica_finishes_the_rollout_of_a_killed_leader() -> Result<()> {
    let mut scene = two_replicas().await?;
    let from = scene.timeline.catch_up().await?;
    let leader = leader_at_third_write(&scene).await?;
    scene.operator(leader)?.operator.kill();
    for replica in REPLICAS {
        scene.behind(replica)?.proxy.clear();
    }
    scene.wait_rollout("web").await?;
    scene.stays_deployment("web").await?;
    scene.check_bounds(from, 5, 3).await
}

#[tokio::test]
async fn a_leader_that_slept_through_its_lease_writes_nothing_more() -> Result<()> {
    let mut scene = two_replicas().await?;
    let from = scene.timeline.catch_up().await?;
    let leader = leader_at_third_write(&scene).await?;
    scene.operator(leader)?.operator.process().suspend();
    let other = REPLICAS.into_iter().find(|replica| *replica != leader).unwrap_or(leader);
    scene.behind(other)?.proxy.clear();
    scene.wait_rollout("web").await?;
    let before = work_of(&scene, leader)?;
    let operator = &mut scene.operator(leader)?.operator;
    operator.process().resume();
    operator.process().wait(DEADLINE).await?;
    let after = work_of(&scene, leader)?;
    ensure!(after == before, "{} writes of a leader without a lease", after - before);
    scene.stays_deployment("web").await?;
    scene.check_bounds(from, 5, 3).await
}
