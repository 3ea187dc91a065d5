//! The fate of dependents when their owner is deleted, in each of the three ways; of built-in kinds and of others.

use anyhow::{Result, ensure};
use kube::ResourceExt;

use super::tree::{HOLD, Kind, Tree, config_maps, define, secrets};
use crate::support::{DEADLINE, Scene, on_shared_cluster};

/// A tree of built-in kinds, and one whose root and branches are of a kind of its own.
async fn each_kind(test: impl AsyncFn(&Scene, &str, [Kind; 3]) -> Result<()>, scene: &Scene) -> Result<()> {
    test(scene, "builtin", [config_maps(), secrets(), config_maps()]).await?;
    let custom = define(scene, "Branch").await?;
    test(scene, "custom", [custom.clone(), custom, config_maps()]).await
}

#[test]
fn in_the_background_dependents_go_after_their_owner() -> Result<()> {
    on_shared_cluster(async |scene| {
        let test = async |scene: &Scene, name: &str, kinds: [Kind; 3]| {
            let tree = Tree::grow(scene, name, kinds).await?;
            tree.delete(scene, "background").await?;
            // The root is gone at once, and all that nobody holds soon.
            tree.wait_left(scene, &[&format!("-{name}-1-1")]).await?;
            tree.let_go(scene).await?;
            tree.wait_left(scene, &[]).await
        };
        each_kind(test, scene).await
    })
}

#[test]
fn in_the_foreground_owners_go_after_their_dependents() -> Result<()> {
    on_shared_cluster(async |scene| {
        let test = async |scene: &Scene, name: &str, kinds: [Kind; 3]| {
            let tree = Tree::grow(scene, name, kinds).await?;
            tree.delete(scene, "foreground").await?;
            // One held leaf holds its branch, and that the root; the other branch is gone.
            let held = [format!("-{name}"), format!("-{name}-1"), format!("-{name}-1-1")];
            tree.wait_left(scene, &held.each_ref().map(String::as_str)).await?;
            for (kind, name) in [(&tree.kinds[0], name.to_owned()), (&tree.kinds[1], format!("{name}-1"))] {
                let waits = kind.find(scene, &name).await?.map(|object| object.finalizers().to_vec());
                ensure!(waits.as_deref() == Some(&["foregroundDeletion".to_owned()]), "{name} has {waits:?}");
            }
            tree.let_go(scene).await?;
            tree.wait_left(scene, &[]).await
        };
        each_kind(test, scene).await
    })
}

#[test]
fn orphans_stay_with_what_they_own_themselves() -> Result<()> {
    on_shared_cluster(async |scene| {
        let test = async |scene: &Scene, name: &str, kinds: [Kind; 3]| {
            let tree = Tree::grow(scene, name, kinds).await?;
            tree.delete(scene, "orphan").await?;
            let rest = ["-0", "-0-0", "-0-1", "-1", "-1-0", "-1-1"].map(|suffix| format!("{name}{suffix}"));
            tree.wait_left(scene, &rest.each_ref().map(String::as_str)).await?;
            for branch in tree.kinds[1].list(scene, &format!("tree={name}")).await? {
                let is_leaf = branch.name_any().matches('-').count() == 2;
                let owners = branch.owner_references();
                ensure!(owners.is_empty() != is_leaf, "{} has {owners:?}", branch.name_any());
            }
            for leaf in tree.kinds[2].list(scene, &format!("tree={name}")).await? {
                ensure!(leaf.owner_references().len() == 1, "{} has lost its owner", leaf.name_any());
            }
            tree.let_go(scene).await
        };
        each_kind(test, scene).await
    })
}

#[test]
fn a_foreground_deletion_does_not_wait_for_whom_another_owner_keeps() -> Result<()> {
    on_shared_cluster(async |scene| {
        let (owners, dependents) = (secrets(), config_maps());
        let [goes, stays] = ["goes", "stays"].map(|name| owners.object(name, &[]));
        let (goes, stays) = (scene.apply(&goes).await?, scene.apply(&stays).await?);
        let references = [super::tree::blocking(&goes), super::tree::reference(&stays)];
        scene.apply(&dependents.object("shared", &references)).await?;
        // One that does not block is no reason to wait either, whatever holds it.
        let mut slow = dependents.object("slow", &[super::tree::reference(&goes)]);
        slow["metadata"]["finalizers"] = serde_json::json!([HOLD]);
        scene.apply(&slow).await?;

        scene.kubectl("delete secret/goes --cascade=foreground --wait=false").await?;
        scene
            .wait_until("the owner is gone, and its dependent another one's", DEADLINE, async || {
                ensure!(owners.find(scene, "goes").await?.is_none(), "the owner is there");
                let shared = dependents.find(scene, "shared").await?;
                let left = shared.map(|shared| shared.owner_references().to_vec()).unwrap_or_default();
                let left: Vec<&str> = left.iter().map(|owner| owner.name.as_str()).collect();
                ensure!(left == ["stays"], "{left:?}");
                let slow = dependents.find(scene, "slow").await?;
                ensure!(slow.is_some_and(|slow| slow.metadata.deletion_timestamp.is_some()), "nobody deletes it");
                Ok(())
            })
            .await?;
        dependents.merge(scene, "slow", &serde_json::json!({"metadata": {"finalizers": null}})).await.map(drop)
    })
}
