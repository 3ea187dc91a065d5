//! SIGKILL at each write of a StatefulSet's creation and of its update: one pod at a time, and none more than that takes.
//! And claims whose creations are not answered, or that are not seen: none that the policy keeps is lost.
//!
//! Left out: pods that run with a claim. Nobody binds claims here.

use anyhow::{Result, ensure};
use e2e::proxy::{Action, Rule};
use http::Method;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use serde_json::json;

use super::{kill_at, with_operators};
use crate::support::behind::each;
use crate::support::{DEADLINE, Scene, stateful_set, uid};

const STATEFUL_SET: &str = "statefulset-operator";
const REPLICAS: i32 = 3;

#[test]
fn an_ordered_creation_survives_the_operator_killed_at_each_write() -> Result<()> {
    with_operators([STATEFUL_SET], async |scene, [mut victim]| {
        let create = async |name: &str| scene.apply(&stateful_set(name, REPLICAS, &json!({}))).await.map(drop);
        let (mut writes, mut is_reached) = (0, true);
        while is_reached {
            let name = format!("web{writes}");
            let complete = async || settled(scene, &name).await;
            let (reached, seen) = kill_at(scene, &mut victim, (&name, writes), create(&name), complete).await?;
            ensure!(seen.pods.len() == 3, "{} pods of three", seen.pods.len());
            is_reached = reached;
            writes += 1;
        }
        // A revision, three pods, and what the status says of them.
        ensure!(writes > 5, "a creation with less than {writes} writes");
        Ok(())
    })
}

#[test]
fn an_update_survives_the_operator_killed_at_each_write() -> Result<()> {
    with_operators([STATEFUL_SET], async |scene, [mut victim]| {
        scene.apply(&stateful_set("web", REPLICAS, &json!({"revisionHistoryLimit": 2}))).await?;
        settled(scene, "web").await?;
        let (mut writes, mut is_reached) = (0, true);
        while is_reached {
            let template = json!({"metadata": {"annotations": {"step": writes.to_string()}}});
            let update =
                async { scene.patch::<StatefulSet>("web", &json!({"spec": {"template": template}})).await.map(drop) };
            let complete = async || settled(scene, "web").await;
            let (reached, seen) = kill_at(scene, &mut victim, ("web", writes), update, complete).await?;
            ensure!(seen.pods.len() == 6, "{} pods for three old and three new ones", seen.pods.len());
            ensure!(seen.least_ready >= 2, "only {} pods were ready", seen.least_ready);
            is_reached = reached;
            writes += 1;
        }
        ensure!(writes > 8, "an update with less than {writes} writes");
        scene
            .wait_until("no revision is left but two of history", DEADLINE, async || {
                let revisions: Vec<ControllerRevision> = scene.list("app=web").await?;
                ensure!(revisions.len() == 3, "{} revisions", revisions.len());
                Ok(())
            })
            .await
    })
}

/// Three pods, one, and three again, in parallel: they have claims, and so none of them ever runs.
#[test]
fn no_claim_is_lost_where_answers_are_lost_and_claims_are_not_seen() -> Result<()> {
    with_operators([STATEFUL_SET], async |scene, [behind]| {
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        });
        let lose = || Rule::new(Action::LoseResponse).always();
        for (name, when_scaled) in [("keeps", "Retain"), ("drops", "Delete")] {
            behind.proxy.add(lose().method(Method::POST).path("**/persistentvolumeclaims").when(each(2)));
            behind.proxy.add(lose().method(Method::PATCH).path("**/persistentvolumeclaims/*").when(each(2)));
            behind.proxy.add(lose().method(Method::POST).path("**/pods").when(each(3)));
            behind.proxy.add(lose().method(Method::DELETE).path("**/pods/*").when(each(2)));
            let policy = json!({"whenDeleted": "Retain", "whenScaled": when_scaled});
            let fields = json!({
                "podManagementPolicy": "Parallel", "volumeClaimTemplates": [claim],
                "persistentVolumeClaimRetentionPolicy": policy,
            });
            scene.apply(&stateful_set(name, REPLICAS, &fields)).await?;
            let claims = owned(scene, name, &[false; 3]).await?;
            behind.proxy.freeze_watches("**/persistentvolumeclaims");
            scene.patch::<StatefulSet>(name, &json!({"spec": {"replicas": 1}})).await?;
            let condemned = when_scaled == "Delete";
            let owned_by_pods = [false, condemned, condemned];
            let kept = owned(scene, name, &owned_by_pods).await?;
            ensure!(kept == claims, "{claims:?} became {kept:?}");
            behind.proxy.thaw_watches();
            ensure!(behind.lost("**/persistentvolumeclaims") > 0, "no creation of a claim was lost");
            behind.proxy.clear();
            if !condemned {
                scene.patch::<StatefulSet>(name, &json!({"spec": {"replicas": 3}})).await?;
                let kept = owned(scene, name, &owned_by_pods).await?;
                ensure!(kept == claims, "{claims:?} became {kept:?}");
            }
        }
        let deletions = behind.count(&Method::DELETE, "**/persistentvolumeclaims/*");
        ensure!(deletions == 0, "{deletions} deletions of claims");
        Ok(())
    })
}

/// The uids of a StatefulSet's claims by ordinal, once these of them are owned by their pods, and so many pods are there
/// as the StatefulSet asks for.
async fn owned(scene: &Scene, name: &str, by_pods: &[bool]) -> Result<Vec<String>> {
    scene
        .wait_until(&format!("{name} has its pods, and of its claims {by_pods:?} have owners"), DEADLINE, async || {
            let set: StatefulSet = scene.fetch(name).await?;
            let status = set.status.unwrap_or_default();
            let pods = scene.list::<Pod>(&format!("app={name}")).await?.len();
            let asked = set.spec.and_then(|spec| spec.replicas).unwrap_or(0);
            ensure!((i32::try_from(pods)?, status.replicas) == (asked, asked), "{pods} pods: {status:?}");
            ensure!(status.observed_generation == set.metadata.generation, "{status:?}");
            let claims: Vec<PersistentVolumeClaim> = scene.list(&format!("app={name}")).await?;
            let found: Vec<bool> = claims.iter().map(|claim| !claim.owner_references().is_empty()).collect();
            ensure!(found == by_pods, "{found:?}");
            Ok(claims.iter().map(uid).collect())
        })
        .await
}

/// Waits until all pods are of the newest revision and ready.
pub(super) async fn settled(scene: &Scene, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} is complete"), DEADLINE, async || {
            let set: StatefulSet = scene.fetch(name).await?;
            let status = set.status.unwrap_or_default();
            let is_seen = status.observed_generation == set.metadata.generation;
            let is_updated = status.current_revision == status.update_revision;
            let counts = (status.replicas, status.ready_replicas, status.updated_replicas);
            ensure!(is_seen && is_updated && counts == (REPLICAS, Some(REPLICAS), Some(REPLICAS)), "{status:?}");
            Ok(())
        })
        .await
}
