//! SIGKILL at each write of a rollout: no sync may rely on being finished.

use anyhow::{Result, ensure};

use super::{DEPLOYMENT, REPLICA_SET, complete, deploy, roll_out, stays, with_operators};
use crate::support::Scene;
use crate::support::behind::{Behind, Gate, nth_work};

#[test]
fn a_rollout_survives_the_replica_set_operator_killed_at_each_write() -> Result<()> {
    with_operators([REPLICA_SET, DEPLOYMENT], async |scene, [mut victim, _deployment]| {
        kill_at_each_write(scene, &mut victim).await
    })
}

#[test]
fn a_rollout_survives_the_deployment_operator_killed_at_each_write() -> Result<()> {
    with_operators([DEPLOYMENT, REPLICA_SET], async |scene, [mut victim, _replica_set]| {
        kill_at_each_write(scene, &mut victim).await
    })
}

/// A write that happened, whose answer never came, is what there is between it and the next one; before the first there is
/// one more moment to die at.
async fn kill_at_each_write(scene: &Scene, victim: &mut Behind) -> Result<()> {
    deploy(scene).await?;
    ensure!(kill_at(scene, victim, 0, false).await?, "a rollout without a write");
    let mut writes = 0;
    while kill_at(scene, victim, writes + 1, true).await? {
        writes += 1;
    }
    ensure!(writes >= 8, "a rollout with {writes} writes");
    stays(scene).await
}

/// One rollout; gives whether it took so many writes. The write during which the operator is killed `happens` or not.
async fn kill_at(scene: &Scene, victim: &mut Behind, write: u32, happens: bool) -> Result<bool> {
    let gate = Gate::new();
    let mut reached = false;
    victim.proxy.add(nth_work(if happens { gate.after() } else { gate.before() }, write));
    roll_out(scene, write, async || {
        tokio::select! {
            () = gate.reached() => reached = true,
            done = complete(scene) => done?,
        }
        // A write that comes after all is done is held, too.
        victim.kill_and_restart()
    })
    .await?;
    Ok(reached)
}
