//! Three members of kube-controller-manager's election, as three control planes have them: one after the other becomes the
//! one process of all operators and later kube-controller-manager again, while a Deployment rolls, a Job runs and an
//! eviction waits for its time.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::Operator;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use super::nodes::{KEY, TAINTED, begin};
use super::{finish_some_work, finished, moving, roll_half, versions};
use crate::batch::{behaving, completed, job, pods};
use crate::support::clusters::program;
use crate::support::{DEADLINE, Scene, uid, with_cluster};

const MEMBERS: [&str; 3] = ["first", "second", "third"];
/// Longer than the change of one member, so that another one ends the countdown.
const TOLERATED: Duration = Duration::from_secs(20);
/// So many pods at a time and in all; each takes two seconds.
const JOB: (i32, i32) = (2, 16);

/// Who works, once it is another one than `former`.
async fn leader(scene: &Scene, former: &str) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    scene
        .wait_until("a member leads", DEADLINE, async || {
            let lease = leases.get("kube-controller-manager").await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            ensure!(!holder.is_empty() && holder != former, "{holder:?} leads");
            Ok(holder)
        })
        .await
}

/// Replaces one member after the other in the middle of all that goes on, and waits until that is done.
async fn change(moves: &Scene, members: &mut [Operator], to: &ControllerManager, step: u32) -> Result<()> {
    let (name, evicted) = (format!("job-{step}"), format!("evicted-{step}"));
    let slow = json!({"pods.e2e/becomes": "exited", "pods.e2e/after": "2s"});
    moves.apply(&behaving(job(&name, JOB.0, JOB.1), &slow, "sleep 2")).await?;
    begin(moves, &evicted, TOLERATED.as_secs()).await?;
    let began = Instant::now();
    roll_half(moves, step).await?;
    for (member, name) in members.iter_mut().zip(MEMBERS) {
        member.terminate().await.with_context(|| format!("end the {name} member"))?;
        *member = moves.cluster.start_control_plane(&format!("{name}-{step}"), to).await?;
    }
    moves.rolled_out("moving").await?;
    completed(moves, &name).await?;
    let ended = pods(moves, &name).await?.len();
    ensure!(i32::try_from(ended)? == JOB.1, "{ended} pods of {name}");
    moves.gone::<Pod>(&evicted).await?;
    let stayed = began.elapsed();
    ensure!(stayed + Duration::from_secs(1) >= TOLERATED, "{evicted} stayed for {stayed:?} only");
    Ok(())
}

#[test]
fn three_control_planes_change_hands_one_after_the_other_and_back() -> Result<()> {
    with_cluster(ClusterOptions { has_node_lifecycle: true, ..ClusterOptions::default() }, async |scene| {
        let upstream = ControllerManager::all();
        let ours = ControllerManager::one_process(program());
        scene.cluster.install_one_process().await?;
        let mut members = Vec::new();
        for name in MEMBERS {
            members.push(scene.cluster.start_control_plane(name, &upstream).await?);
        }
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let taint = Patch::Merge(json!({"spec": {"taints": [{"key": KEY, "effect": "NoExecute"}]}}));
        nodes.patch(TAINTED, &PatchParams::default(), &taint).await.context("taint a node")?;
        let moves = scene.beside("moves").await?;
        finish_some_work(scene).await?;
        moves.apply(&moving()).await?;
        moves.rolled_out("moving").await?;
        begin(&moves, "patient", 3600).await?;
        let patient = uid(&moves.fetch::<Pod>("patient").await?);
        let (rested, first) = (finished(scene).await?, leader(scene, "").await?);

        change(&moves, &mut members, &ours, 2).await?;
        let second = leader(scene, &first).await?;
        assert_eq!(versions(scene).await?, rested, "the operators wrote what needed no write");

        change(&moves, &mut members, &upstream, 3).await?;
        leader(scene, &second).await?;
        assert_eq!(versions(scene).await?, rested, "what the operators left was not what upstream expects");
        assert_eq!(uid(&moves.fetch::<Pod>("patient").await?), patient, "it has an hour");
        let sets: Vec<ReplicaSet> = moves.list("app=moving").await?;
        assert_eq!(sets.len(), 3, "one ReplicaSet a template, whoever made it");
        Ok(())
    })
}
