//! A cascading deletion that changes hands in its middle, in both directions.

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::namespaces::says;
use super::tree::{HOLD, Kind, Tree, config_maps, define, secrets};
use crate::support::{Scene, operators, start_operators, with_cluster};

/// The objects of a tree that are left while its last leaf is held.
const IN_THE_MIDDLE: [&str; 3] = ["-tree", "-tree-1", "-tree-1-1"];

/// Trees of built-in kinds and of another one, and one that nobody deletes.
struct Forest {
    going: Vec<(Scene, Tree)>,
    staying: Tree,
}

impl Forest {
    async fn grow(scene: &Scene, suffix: &str) -> Result<Self> {
        let mut going = Vec::new();
        let (first, second) =
            (scene.beside(&format!("{suffix}-a")).await?, scene.beside(&format!("{suffix}-b")).await?);
        let custom: Kind = define(&second, "Branch").await?;
        let builtin = [config_maps(), secrets(), config_maps()];
        let tree = Tree::grow(&first, "tree", builtin.clone()).await?;
        going.push((first, tree));
        let tree = Tree::grow(&second, "tree", [custom.clone(), custom, config_maps()]).await?;
        going.push((second, tree));
        Ok(Self { going, staying: Tree::grow(scene, suffix, builtin).await? })
    }

    async fn begin_to_go(&self) -> Result<()> {
        for (scene, tree) in &self.going {
            tree.delete(scene, "foreground").await?;
        }
        for (scene, tree) in &self.going {
            tree.wait_left(scene, &IN_THE_MIDDLE).await?;
        }
        Ok(())
    }

    /// Lets the trees go. The controllers at work now have never seen the beginning.
    async fn go(&self, scene: &Scene) -> Result<()> {
        for (scene, tree) in &self.going {
            tree.wait_left(scene, &IN_THE_MIDDLE).await?;
            tree.let_go(scene).await?;
        }
        for (scene, tree) in &self.going {
            tree.wait_left(scene, &[]).await?;
        }
        let left = self.staying.left(scene).await?;
        ensure!(left.len() == 7 && left.iter().all(|name| !name.starts_with('-')), "{left:?}");
        Ok(())
    }
}

/// A namespace in the middle of its end: one object is held.
async fn end_half(scene: &Scene, suffix: &str) -> Result<Scene> {
    let ending = scene.beside(suffix).await?;
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": [HOLD]}});
    ending.apply(&held).await?;
    ending.delete_namespace().await?;
    let message = "Some resources are remaining: configmaps. has 1 resource instances";
    says(&ending, "NamespaceContentRemaining", ["True", "SomeResourcesRemain", message]).await?;
    Ok(ending)
}

async fn end(scene: &Scene) -> Result<()> {
    scene.patch::<ConfigMap>("held", &json!({"metadata": {"finalizers": null}})).await?;
    scene.namespace_gone().await
}

#[test]
fn a_cascading_deletion_changes_hands_in_its_middle_and_back() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        let rest = ControllerManager::without(operators().map(upstream_controller));
        let (forest, ending) = (Forest::grow(scene, "first").await?, end_half(scene, "ends-first").await?);
        forest.begin_to_go().await?;
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(rest).await?;
        let mut operators = start_operators(&scene.cluster, operators()).await?;
        forest.go(scene).await?;
        end(&ending).await?;

        let (forest, ending) = (Forest::grow(scene, "second").await?, end_half(scene, "ends-second").await?);
        forest.begin_to_go().await?;
        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        forest.go(scene).await?;
        end(&ending).await
    })
}
