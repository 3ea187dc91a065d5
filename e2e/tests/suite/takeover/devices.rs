//! The controllers of devices handed over while pods wait for claims, devices and the end of a toleration, and back: no pod
//! gets a second claim, none that runs loses its own, and a countdown goes on from when the taint was added.
//!
//! The scheduler allocates. The devices are the test's, and no kubelet prepares them.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::ResourceExt;
use serde_json::json;
use tokio::time::Instant;

use crate::support::devices::{claim_template, claims_of, device, device_class, has_claim, runs, tainted, user};
use crate::support::{DEADLINE, Scene, start_operators, with_cluster};

const OPERATORS: [&str; 2] = ["device-taint-eviction-operator", "resourceclaim-operator"];
/// Longer than a hand-over takes.
const TOLERATED: Duration = Duration::from_secs(15);

async fn versions(scene: &Scene) -> Result<Vec<String>> {
    let claims: Vec<ResourceClaim> = scene.list("").await?;
    let pods: Vec<Pod> = scene.list("").await?;
    let claims = claims.iter().map(|claim| format!("{} {:?}", claim.name_any(), claim.resource_version()));
    let pods = pods.iter().map(|pod| format!("{} {:?}", pod.name_any(), pod.resource_version()));
    Ok(claims.chain(pods).collect())
}

/// Begins what is in its middle: a pod without a template, one without a device, one that uses a device and will have
/// ended, and one whose countdown runs. Returns the claim of the first, and when the countdown has begun at the earliest.
async fn begin(scene: &Scene, step: u32) -> Result<(String, Instant)> {
    let name = |kind: &str| format!("{kind}-{step}");
    for kind in ["waits", "ends", "counts"] {
        claim_template(scene, &name(kind), TOLERATED).await?;
    }
    for kind in ["ends", "counts"] {
        device(scene, &name(kind), &json!([])).await?;
    }
    for kind in ["waits", "ends", "counts", "lacks"] {
        user(scene, &name(kind), &name(kind)).await?;
    }
    let claim = has_claim(scene, &name("waits")).await?;
    scene.told("FailedResourceClaimCreation").await?;
    for kind in ["ends", "counts"] {
        runs(scene, &name(kind)).await?;
    }
    let tainting = Instant::now();
    device(scene, &name("counts"), &tainted()).await?;
    Ok((claim, tainting))
}

/// Waits until all of it has ended well under whoever works now.
async fn end(scene: &Scene, step: u32, waiting: &str, tainting: Instant) -> Result<()> {
    let name = |kind: &str| format!("{kind}-{step}");
    claim_template(scene, &name("lacks"), TOLERATED).await?;
    for kind in ["waits", "lacks"] {
        device(scene, &name(kind), &json!([])).await?;
    }
    for kind in ["waits", "lacks"] {
        runs(scene, &name(kind)).await?;
        let claims = claims_of(scene, &name(kind)).await?;
        ensure!(claims.len() == 1, "{kind} has {} claims", claims.len());
    }
    ensure!(has_claim(scene, &name("waits")).await? == waiting, "it waited with another claim");
    scene
        .wait_until("the claim of the pod that has ended is gone", DEADLINE, async || {
            let left = claims_of(scene, &name("ends")).await?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await?;
    scene
        .wait_until("the countdown is over", TOLERATED + DEADLINE, async || {
            let left: Option<Pod> = scene.api().get_opt(&name("counts")).await?;
            ensure!(left.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()), "it is still there");
            Ok(())
        })
        .await?;
    let stayed = tainting.elapsed();
    // The apiserver writes whole seconds.
    ensure!(stayed + Duration::from_secs(1) >= TOLERATED, "it stayed for {stayed:?}");
    for kind in ["waits", "lacks", "ends"] {
        scene.delete_pod(&name(kind)).await?;
    }
    scene
        .wait_until("no claim is left", DEADLINE, async || {
            let left: Vec<ResourceClaim> = scene.list("").await?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await
}

#[test]
fn claims_of_devices_change_hands_while_pods_wait_run_and_end_and_back() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager().with_gated_kinds(), async |scene| {
        let moves = scene.beside("moves").await?;
        device_class(scene).await?;
        claim_template(scene, "runs", TOLERATED).await?;
        device(scene, "runs", &json!([])).await?;
        user(scene, "runs", "runs").await?;
        runs(scene, "runs").await?;
        let finished = versions(scene).await?;

        let (waiting, tainting) = begin(&moves, 1).await?;
        scene.cluster.stop_controller_manager().await?;
        moves.end_pod("ends-1", 0).await?;
        let rest = ControllerManager::without(OPERATORS.map(upstream_controller));
        scene.cluster.start_controller_manager(rest.with_every_gate()).await?;
        let mut operators = start_operators(&scene.cluster, OPERATORS).await?;
        end(&moves, 1, &waiting, tainting).await?;
        assert_eq!(versions(scene).await?, finished, "the operators wrote what needed no write");

        let (waiting, tainting) = begin(&moves, 2).await?;
        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        moves.end_pod("ends-2", 0).await?;
        scene.cluster.start_controller_manager(ControllerManager::all().with_every_gate()).await?;
        end(&moves, 2, &waiting, tainting).await?;
        assert_eq!(versions(scene).await?, finished, "what the operators left was not what upstream expects");
        Ok(())
    })
}
