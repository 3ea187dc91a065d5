//! The operator killed at each write, and behind watches that say nothing: no slice keeps an address that is gone.

use anyhow::{Result, ensure};
use e2e::cluster::ClusterOptions;

use super::{OPERATOR, endpoints, mirrored, service, subset};
use crate::support::behind::{Behind, Gate, nth_work};
use crate::support::{Scene, with_cluster};

const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";

/// One of two states: from each to the other takes three writes, of which two use a slice for other ports.
async fn change(scene: &Scene, to_three: bool) -> Result<()> {
    let three = [subset(&["10.1.0.1", "10.1.0.2", "fd00::1"], 5432), subset(&["10.1.0.3"], 5433)];
    let two = [subset(&["10.1.0.4"], 5434), subset(&["fd00::2"], 5435)];
    scene.apply(&endpoints("db", if to_three { &three } else { &two })).await.map(drop)
}

async fn changed(scene: &Scene, to_three: bool) -> Result<()> {
    let three = ["5432: 10.1.0.1 10.1.0.2", "5432: fd00::1", "5433: 10.1.0.3"];
    let two = ["5434: 10.1.0.4", "5435: fd00::2"];
    mirrored(scene, "db", if to_three { &three } else { &two }).await.map(drop)
}

/// One change; gives whether it took so many writes. The write during which the operator is killed `happens` or not.
async fn kill_at(scene: &Scene, victim: &mut Behind, to_three: bool, (write, happens): (u32, bool)) -> Result<bool> {
    let gate = Gate::new();
    let mut is_reached = false;
    victim.proxy.add(nth_work(if happens { gate.after() } else { gate.before() }, write));
    change(scene, to_three).await?;
    tokio::select! {
        () = gate.reached() => is_reached = true,
        done = changed(scene, to_three) => done?,
    }
    // A write that comes after all is done is held, too.
    victim.kill_and_restart()?;
    changed(scene, to_three).await?;
    Ok(is_reached)
}

#[test]
fn no_slice_keeps_an_address_that_is_gone() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 1, ..ClusterOptions::default() }, async |scene| {
        let mut victim = Behind::start(scene, OPERATOR, OPERATOR, &[]).await?;
        scene.apply(&service("db")).await?;
        change(scene, false).await?;
        changed(scene, false).await?;
        for to_three in [true, false] {
            ensure!(kill_at(scene, &mut victim, to_three, (0, false)).await?, "a change without a write");
        }
        for write in 1..=3 {
            for to_three in [true, false] {
                ensure!(kill_at(scene, &mut victim, to_three, (write, true)).await?, "no write {write}");
            }
        }

        // A watch that is frozen before its first list would never let work begin.
        victim.operator.wait_ready().await?;
        let writes = victim.work().len();
        victim.proxy.freeze_watches(SLICES);
        change(scene, true).await?;
        changed(scene, true).await?;
        // Now it decides only once it has seen that.
        change(scene, false).await?;
        victim.proxy.thaw_watches();
        changed(scene, false).await?;
        change(scene, true).await?;
        changed(scene, true).await?;
        let written = victim.work().len() - writes;
        ensure!(written == 9, "{written} writes");
        Ok(())
    })
}
