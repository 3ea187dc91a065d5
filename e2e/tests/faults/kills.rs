//! SIGKILL before and after each write of a rollout: no sync may rely on being finished.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;

use crate::scene::{DEPLOYMENT, Gate, REPLICA_SET, Scene, deployment, new_image, nth_work};

#[tokio::test]
async fn a_rollout_survives_the_replica_set_operator_killed_at_each_write() -> Result<()> {
    kill_at_each_write(REPLICA_SET).await
}

#[tokio::test]
async fn a_rollout_survives_the_deployment_operator_killed_at_each_write() -> Result<()> {
    kill_at_each_write(DEPLOYMENT).await
}

async fn kill_at_each_write(victim: &str) -> Result<()> {
    let mut scene = Scene::start(&[REPLICA_SET, DEPLOYMENT]).await?;
    scene.apply(&deployment(4)).await?;
    scene.wait_rollout("web").await?;
    let mut images = 0;
    for happens in [false, true] {
        let mut kills = 0;
        for write in 1.. {
            images += 1;
            if !kill_at(&mut scene, victim, images, write, happens).await? {
                break;
            }
            kills += 1;
        }
        ensure!(kills >= 5, "a rollout with {kills} writes of {victim}");
    }
    scene.stays_deployment("web").await
}

/// One rollout; gives whether it took so many writes. The write during which the operator is killed `happens` or not.
async fn kill_at(scene: &mut Scene, victim: &str, image: usize, write: u32, happens: bool) -> Result<bool> {
    let from = scene.timeline.catch_up().await?;
    let gate = Gate::new();
    let action = if happens { gate.after() } else { gate.before() };
    scene.behind(victim)?.proxy.add(nth_work(action, write));
    scene.patch_spec::<Deployment>("web", &new_image(image)).await?;
    let reached = tokio::select! {
        () = gate.reached() => true,
        done = scene.wait_rollout("web") => { done?; false }
    };
    // A write that comes after all is done is held, too.
    scene.operator(victim)?.kill_and_restart()?;
    scene.wait_rollout("web").await?;
    scene.check_bounds(from, 5, 3).await?;
    Ok(reached)
}
