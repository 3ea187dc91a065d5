//! Old ReplicaSets: kept, removed, orphaned and adopted.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;
use serde_json::json;

use super::{pods, sizes};
use crate::support::{DEADLINE, deployment, on_shared_cluster, uid};

#[test]
fn pods_survive_an_orphaning_deletion_and_a_new_deployment_adopts_them() -> Result<()> {
    on_shared_cluster(async |scene| {
        let web = deployment("web", 5);
        scene.apply(&web).await?;
        scene.rolled_out("web").await?;
        let (pods_before, sets_before) = (pods(scene, "web").await?, scene.list::<ReplicaSet>("app=web").await?);

        scene.kubectl("delete deployment/web --cascade=orphan").await?;
        scene
            .wait_until("the ReplicaSet is an orphan", DEADLINE, async || {
                let sets = scene.list::<ReplicaSet>("app=web").await?;
                ensure!(sets.len() == 1 && sets[0].owner_references().is_empty(), "{sets:?}");
                Ok(())
            })
            .await?;
        scene.apply(&web).await?;
        scene.rolled_out("web").await?;

        let owner: Deployment = scene.fetch("web").await?;
        let sets: Vec<ReplicaSet> = scene.list("app=web").await?;
        assert_eq!(sets.iter().map(uid).collect::<Vec<_>>(), sets_before.iter().map(uid).collect::<Vec<_>>());
        assert_eq!(sets[0].owner_references()[0].uid, uid(&owner));
        assert_eq!(pods(scene, "web").await?, pods_before);
        Ok(())
    })
}

#[test]
fn a_replica_set_that_leaves_the_selector_is_released_with_its_pods() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&deployment("web", 2)).await?;
        scene.rolled_out("web").await?;
        let old = scene.list::<ReplicaSet>("app=web").await?.remove(0);
        let old_pods = pods(scene, "web").await?;
        scene.patch::<ReplicaSet>(&old.name_any(), &json!({"metadata": {"labels": {"app": "other"}}})).await?;
        scene
            .wait_until("a new ReplicaSet, and the old one without an owner", DEADLINE, async || {
                let released: ReplicaSet = scene.fetch(&old.name_any()).await?;
                ensure!(released.owner_references().is_empty(), "still owned");
                let new = scene.list::<ReplicaSet>("app=web").await?;
                ensure!(new.len() == 1, "{} ReplicaSets", new.len());
                Ok(())
            })
            .await?;
        scene.rolled_out("web").await?;
        let now = pods(scene, "web").await?;
        assert!(old_pods.iter().all(|pod| now.contains(pod)), "the released pods are gone");
        Ok(())
    })
}

#[test]
fn the_deprecated_annotation_rolls_back() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&deployment("web", 2)).await?;
        scene.rolled_out("web").await?;
        scene.kubectl("set env deployment/web STEP=2").await?;
        scene.rolled_out("web").await?;
        scene.kubectl("annotate deployment/web deprecated.deployment.rollback.to=0").await?;
        scene
            .wait_until("the last revision but one is back", DEADLINE, async || {
                let sizes = sizes(scene, "web").await?;
                ensure!(sizes == [(2, 0), (3, 2)], "{sizes:?}");
                ensure!(!scene.events("DeploymentRollback").await?.is_empty(), "no event says so");
                Ok(())
            })
            .await
    })
}

#[test]
fn old_revisions_beyond_the_limit_are_removed() -> Result<()> {
    on_shared_cluster(async |scene| {
        let mut web = deployment("web", 1);
        web["spec"]["revisionHistoryLimit"] = json!(2);
        scene.apply(&web).await?;
        scene.rolled_out("web").await?;
        for revision in 2..=5 {
            scene.kubectl(&format!("set env deployment/web REVISION={revision}")).await?;
            scene.rolled_out("web").await?;
        }
        scene
            .wait_until("two old ReplicaSets are left", DEADLINE, async || {
                let sizes = sizes(scene, "web").await?;
                ensure!(sizes == [(3, 0), (4, 0), (5, 1)], "{sizes:?}");
                Ok(())
            })
            .await
    })
}

#[test]
fn a_deleted_deployment_takes_everything_with_it() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&deployment("web", 3)).await?;
        scene.rolled_out("web").await?;
        scene.kubectl("delete deployment/web --cascade=foreground --timeout=60s").await?;
        assert_eq!(scene.list::<ReplicaSet>("app=web").await?.len(), 0);
        assert_eq!(pods(scene, "web").await?, Vec::<String>::new());
        Ok(())
    })
}
