//! States that come only after minutes: `make e2e` leaves this module out, and `make e2e-minutes` runs it.

use std::time::Duration;

use anyhow::{Result, ensure};
use cli::cause::State;
use e2e::cluster::ClusterOptions;
use futures::FutureExt;

use super::operators::{PODS, complete, replica_set};
use super::{Row, row, session};
use crate::support::behind::Behind;
use crate::support::{DEADLINE, Scene, with_cluster};

const OPERATOR: &str = "replicaset-operator";
/// So long `why` trusts a cache that hears nothing.
const SILENCE: Duration = Duration::from_secs(180);

#[test]
fn an_open_watch_that_brings_nothing_is_told_from_one_that_has_nothing_to_bring() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 2, ..ClusterOptions::default() }, async |scene| {
        let behind = Behind::start(scene, OPERATOR, OPERATOR, &["--leader-elect=true"]).await?;
        let session = session(scene, [(OPERATOR, behind.operator.port())]).await?;
        scene.apply(&replica_set()).await?;
        complete(scene).await?;

        // Bookmarks of pods are held back, too. Those of ReplicaSets, which change as little, come, and the Lease is
        // renewed.
        behind.proxy.freeze_watches(PODS);
        let asked_for = || (behind.lists(PODS), behind.rewatches(PODS));
        let before = asked_for();
        let silent = silent();
        (silent.make)(scene).await?;
        let (expected, deadline) = (silent.expected(scene), SILENCE + DEADLINE);
        scene.wait_for_minutes(&expected, deadline, async || silent.ask(scene, &session).await).await?;
        let after = asked_for();
        ensure!(after == before, "another watch of pods was begun: {before:?} before, {after:?} after");

        behind.proxy.thaw_watches();
        scene
            .wait_until("the pod is replaced, and nothing is wrong", DEADLINE, async || {
                let found = session.why(&[silent.about(scene)], &scene.namespace).await?;
                ensure!(found.state == State::AtRest, "{found}");
                Ok(())
            })
            .await
    })
}

pub(super) fn rows() -> Vec<Row> {
    vec![silent()]
}

/// The operator has nothing to write. It would notice that it does not see its own write, and list pods anew.
fn silent() -> Row {
    row(
        "An operator's watch is silent",
        "rs/web",
        "web: replicaset-operator has received nothing about pods for * min",
        |scene| lose_pod(scene).boxed_local(),
    )
}

/// Deletes the pod of a ReplicaSet, which then is not at rest.
async fn lose_pod(scene: &Scene) -> Result<()> {
    scene.kubectl("delete pods --selector=app=web").await.map(drop)
}
