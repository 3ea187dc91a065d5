//! The brake on mass deletion: references that were changed by mistake cost a few pods, and what a user deletes goes at
//! once meanwhile. Left out: nodes, whose taints and absence the operators' own tests give by hand.

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::operator::Operator;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use super::tree::reference;
use crate::support::clusters::{monitoring_token, spec};
use crate::support::{DEADLINE, Scene, template, with_cluster};

const COLLECTOR: &str = "garbage-collector-operator";
/// The collector has no brake without it.
const BRAKE: &str = "--mass-deletion-share=0.03";
const PODS: usize = 200;
/// 12 of 400 may go at once; the others crawl, twelve each minute.
const LOST: usize = 36;
const AT_ONCE: usize = 16;

fn names(app: &str) -> Vec<String> {
    (0..PODS).map(|at| format!("{app}-{at}")).collect()
}

/// Pods with an owner that is there, and is not their controller.
async fn pods_of(scene: &Scene, app: &str) -> Result<()> {
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": app}});
    let owner = reference(&scene.apply(&config_map).await?);
    let pods = names(app).into_iter().map(|name| {
        let mut pod = template(app);
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = name.into();
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod
    });
    let created = stream::iter(pods).map(async |pod: Value| scene.apply(&pod).await.map(drop));
    created.buffer_unordered(AT_ONCE).try_collect().await
}

async fn count(scene: &Scene, app: &str) -> Result<usize> {
    Ok(scene.list::<Pod>(&format!("app={app}")).await?.len())
}

/// Waits until that many deletions wait.
async fn held(scene: &Scene, collector: &Operator, wanted: usize) -> Result<()> {
    let token = monitoring_token(scene).await?;
    scene
        .wait_until("deletions wait", DEADLINE, async || {
            let (_, metrics) = collector.get("/metrics", Some(&token)).await?;
            let line = metrics.lines().find_map(|line| line.strip_prefix("mass_deletion_brake_held_total "));
            let held: usize = line.context("no such metric")?.parse()?;
            ensure!(held >= wanted, "{held} wait");
            Ok(())
        })
        .await
}

#[test]
fn references_changed_by_mistake_cost_a_few_pods_and_what_a_user_deletes_goes_at_once() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 5, ..ClusterOptions::default() }, async |scene| {
        let mut with_brake = spec(&scene.cluster, COLLECTOR).await?;
        with_brake.flags.push(BRAKE.to_owned());
        let mut collector = scene.cluster.start_operator(&with_brake).await?;
        collector.wait_ready().await?;
        pods_of(scene, "mistaken").await?;
        pods_of(scene, "deleted").await?;

        let never = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "never",
                            "uid": "00000000-0000-4000-8000-000000000000"}]);
        let change = json!({"metadata": {"ownerReferences": never}});
        let changed =
            stream::iter(names("mistaken")).map(async |name| scene.patch::<Pod>(&name, &change).await.map(drop));
        changed.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        held(scene, &collector, PODS - LOST).await?;

        let owners: Api<ConfigMap> = Api::namespaced(scene.client.clone(), &scene.namespace);
        owners.delete("deleted", &DeleteParams::background()).await.context("delete the owner")?;
        scene
            .wait_until("the pods of the owner that was deleted are gone", DEADLINE, async || {
                let left = count(scene, "deleted").await?;
                ensure!(left == 0, "{left} are left");
                Ok(())
            })
            .await?;
        let left = count(scene, "mistaken").await?;
        ensure!(left >= PODS - LOST, "{left} are left");

        let events: Api<Event> = Api::namespaced(scene.client.clone(), "kube-system");
        let told = events.list(&ListParams::default().fields("reason=MassDeletionSlowed")).await?.items;
        let about: Vec<_> = told.iter().map(|event| event.involved_object.name.as_deref()).collect();
        ensure!(about == [Some(COLLECTOR)], "{told:?}");
        Ok(())
    })
}
