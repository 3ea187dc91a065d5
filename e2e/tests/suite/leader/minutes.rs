//! A leader with nothing to do: `make e2e` leaves this module out, and `make e2e-minutes` runs it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::{OPERATOR, holder, work_is_done};
use crate::support::clusters::spec;
use crate::support::{DEADLINE, Scene, with_cluster};

/// How long the Lease of a leader at rest lasts, by default.
const AT_REST: i32 = 45;
/// It is at rest a quarter of a minute after its last key, from its next renewal on.
const UNTIL_REST: Duration = Duration::from_secs(20);

async fn seconds(scene: &Scene) -> Result<i32> {
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    let spec = leases.get(OPERATOR).await?.spec;
    spec.and_then(|spec| spec.lease_duration_seconds).context("the Lease does not say how long it lasts")
}

async fn comes_to_rest(scene: &Scene) -> Result<()> {
    scene
        .wait_for_minutes("the Lease lasts longer", UNTIL_REST + DEADLINE, async || {
            let seconds = seconds(scene).await?;
            ensure!(seconds == AT_REST, "{seconds} s");
            Ok(())
        })
        .await
}

#[test]
fn the_lease_of_a_leader_with_nothing_to_do_lasts_longer_until_work_comes_or_it_is_taken() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let of = spec(&scene.cluster, OPERATOR).await?;
        let mut first = scene.cluster.start_operator(&of).await?;
        first.wait_ready().await?;
        work_is_done(scene, "first", Instant::now()).await?;
        comes_to_rest(scene).await?;
        work_is_done(scene, "second", Instant::now()).await?;
        assert_eq!(seconds(scene).await?, 15, "while there is work");

        let mut named = of.clone();
        "standby".clone_into(&mut named.name);
        let mut standby = scene.cluster.start_operator(&named).await?;
        standby.wait_ready().await?;
        comes_to_rest(scene).await?;
        let leader = holder(scene).await?;
        first.kill();
        let deadline = Duration::from_secs(AT_REST.unsigned_abs().into()) + DEADLINE;
        scene
            .wait_for_minutes("the standby leads", deadline, async || {
                let now = holder(scene).await?;
                ensure!(now != leader, "{now} still does");
                Ok(())
            })
            .await?;
        work_is_done(scene, "third", Instant::now()).await.map(drop)
    })
}
