//! SIGKILL at each write of a cascade: no attempt may rely on being finished.

use anyhow::{Result, ensure};

use super::super::tree::{Tree, config_maps, reference, secrets};
use super::{COLLECTOR, owners, pair, with_behind};
use crate::support::behind::{Behind, Gate, nth_work};
use crate::support::{DEADLINE, Scene};

/// A write that happened, whose answer never came, is what there is between it and the next one; before the first there is
/// one more moment to die at.
#[test]
fn a_cascade_survives_the_collector_killed_at_each_write() -> Result<()> {
    with_behind(COLLECTOR, async |scene, mut victim| {
        pair(scene, "stays").await?;
        ensure!(kill_at(scene, &mut victim, 0, false).await?, "cascades without a write");
        let mut writes = 0;
        while kill_at(scene, &mut victim, writes + 1, true).await? {
            writes += 1;
        }
        ensure!(writes >= 9, "cascades of {writes} writes");
        ensure!(owners(scene, "stays").await? == ["stays"], "it has lost its owner");
        Ok(())
    })
}

/// One cascade of each kind, all at once; gives whether they took so many writes. The write during which the collector is
/// killed `happens` or not.
async fn kill_at(scene: &Scene, victim: &mut Behind, write: u32, happens: bool) -> Result<bool> {
    let mut trees = Vec::new();
    for cascade in ["foreground", "background", "orphan"] {
        let kinds = [secrets(), config_maps(), secrets()];
        trees.push((cascade, Tree::sprout(scene, &format!("{cascade}{write}"), kinds).await?));
    }
    // One of its owners goes, the other one stays.
    let both = [secrets().find(scene, &trees[1].1.name).await?, secrets().find(scene, "stays").await?];
    let both: Vec<_> = both.iter().flatten().map(reference).collect();
    let shared = format!("shared{write}");
    scene.apply(&config_maps().object(&shared, &both)).await?;

    let gate = Gate::new();
    let mut reached = false;
    victim.proxy.add(nth_work(if happens { gate.after() } else { gate.before() }, write));
    for (cascade, tree) in &trees {
        tree.delete(scene, cascade).await?;
    }
    tokio::select! {
        () = gate.reached() => reached = true,
        done = are_gone(scene, &trees, &shared) => done?,
    }
    // A write that comes after all is done is held, too.
    victim.kill_and_restart()?;
    are_gone(scene, &trees, &shared).await?;
    Ok(reached)
}

/// Waits until all is as the cascades leave it.
async fn are_gone(scene: &Scene, trees: &[(&str, Tree)], shared: &str) -> Result<()> {
    for (cascade, tree) in trees {
        if *cascade == "orphan" {
            let [branch, leaf] = ["-0", "-0-0"].map(|suffix| format!("{}{suffix}", tree.name));
            tree.wait_left(scene, &[&branch, &leaf]).await?;
            ensure!(owners(scene, &branch).await?.is_empty(), "{branch} is no orphan");
        } else {
            tree.wait_left(scene, &[]).await?;
        }
    }
    scene
        .wait_until("what has another owner has only that one", DEADLINE, async || {
            let left = owners(scene, shared).await?;
            ensure!(left == ["stays"], "{left:?}");
            Ok(())
        })
        .await
}
