//! Installed, lost, and taken away: the scripts of an admin, on nodes that kwok plays.
//! Left out: images and real pods, which a real node shows.

mod helm;
mod played;

use anyhow::{Result, ensure};
use e2e::cluster::{ClusterOptions, ControllerManager};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::clusters::manifests;
use crate::support::{DEADLINE, Scene, deployment, uid, with_cluster};
use played::Played;

/// Those that start pods, and one more.
const OPERATORS: [&str; 3] = ["deployment-operator", "replicaset-operator", "garbage-collector-operator"];
/// Families: the one that starts pods, and one more with what it acts as.
const FAMILIES: [&str; 2] = ["workloads-group-operator", "batch-group-operator"];
const OF_BATCH: [&str; 4] = ["batch-group-operator", "job-operator", "cronjob-operator", "ttl-after-finished-operator"];
/// What has been installed of operators, wherever it is.
const INSTALLED: &str = "deployments,replicasets,pods,services,serviceaccounts,poddisruptionbudgets,networkpolicies,\
    roles,rolebindings,clusterroles,clusterrolebindings,validatingadmissionpolicies,\
    validatingadmissionpolicybindings,endpointslices";

/// An admin's script while pods are played: what it prints, if it ends as expected.
async fn script(scene: &Scene, played: &mut Played, line: &str, succeeds: bool) -> Result<String> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let (succeeded, printed) = played.while_doing(scene.cluster.script(name, words)).await?;
    ensure!(succeeded == succeeds, "{line} succeeded: {succeeded}\n{printed}");
    Ok(printed)
}

/// Names of these operators' pods, once each has two and none was made by hand.
async fn pods_of(scene: &Scene, played: &mut Played, operators: &[&str]) -> Result<Vec<String>> {
    let pods = Played::new(&scene.cluster).await?;
    let settled = scene.wait_until("two pods of each operator", DEADLINE, async || {
        let mut names: Vec<String> = pods.pods().await?.iter().map(ResourceExt::name_any).collect();
        names.sort();
        let of = |operator: &&str| names.iter().filter(|name| name.starts_with(*operator)).count();
        let by_hand = names.iter().any(|name| name.ends_with("-bootstrap"));
        ensure!(operators.iter().all(|operator| of(operator) == 2) && !by_hand, "{names:?}");
        Ok(names)
    });
    played.while_doing(settled).await
}

/// A Deployment is scaled to so many: the operators are at work.
async fn scale(scene: &Scene, played: &mut Played, replicas: i32) -> Result<()> {
    let done = async {
        scene.patch::<Deployment>("web", &json!({"spec": {"replicas": replicas}})).await?;
        scene.rolled_out("web").await
    };
    played.while_doing(done).await
}

async fn publish_where_it_is_empty(scene: &Scene, played: &mut Played) -> Result<()> {
    let empty = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}});
    scene.apply(&empty).await?;
    let own = &scene.namespace;
    let refused = script(scene, played, &format!("publish-ca.sh --ca-file /dev/null {own}"), false).await?;
    ensure!(refused.contains("no certificate in /dev/null"), "{refused}");
    let ca = |config_map: ConfigMap| config_map.data.unwrap_or_default().get("ca.crt").cloned().unwrap_or_default();
    ensure!(ca(scene.fetch("kube-root-ca.crt").await?).is_empty(), "something was published");
    script(scene, played, &format!("bootstrap.sh --ca-namespaces kube-system,{own}"), true).await?;
    let home: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "kube-system");
    let published = ca(scene.fetch("kube-root-ca.crt").await?);
    ensure!(published.contains("BEGIN CERTIFICATE"), "{published}");
    ensure!(published == ca(home.get("kube-root-ca.crt").await?), "{published}");
    Ok(())
}

/// No node is like that, so nothing comes up, and nothing may stay.
async fn fail_and_leave_nothing(scene: &Scene, played: &mut Played) -> Result<()> {
    let home: Api<Deployment> = Api::namespaced(scene.client.clone(), "kube-system");
    let selector = |value: Value| json!({"spec": {"template": {"spec": {"nodeSelector": {"no-node": value}}}}});
    let patch = async |value: Value| -> Result<()> {
        let patch = kube::api::Patch::Merge(selector(value));
        home.patch("deployment-operator", &kube::api::PatchParams::default(), &patch).await?;
        Ok(())
    };
    patch(json!("x")).await?;
    let printed = script(scene, played, "bootstrap.sh --timeout 2", false).await?;
    ensure!(printed.contains("deployment-operator-bootstrap"), "{printed}");
    let pods: Api<Pod> = Api::namespaced(scene.client.clone(), "kube-system");
    scene
        .wait_until("no pod stays that was made by hand", DEADLINE, async || {
            let names: Vec<String> =
                pods.list(&kube::api::ListParams::default()).await?.iter().map(uid_and_name).collect();
            ensure!(!names.iter().any(|name| name.ends_with("-bootstrap")), "{names:?}");
            Ok(())
        })
        .await?;
    patch(Value::Null).await
}

fn uid_and_name(pod: &Pod) -> String {
    format!("{} {}", uid(pod), pod.name_any())
}

/// Every pod is another one.
fn replaced(before: &[String], after: &[String], of: &[&str]) -> Result<()> {
    let stayed: Vec<&String> = after
        .iter()
        .filter(|name| before.contains(name) && of.iter().any(|operator| name.starts_with(operator)))
        .collect();
    ensure!(stayed.is_empty(), "{stayed:?} stayed");
    Ok(())
}

async fn lose_and_recover(scene: &Scene, played: &mut Played) -> Result<()> {
    for (seem_to_run, replicas) in [(false, 2), (true, 3)] {
        let before = pods_of(scene, played, &OPERATORS).await?;
        played.lose_all(seem_to_run).await?;
        let available: Deployment =
            Api::namespaced(scene.client.clone(), "kube-system").get("deployment-operator").await?;
        let available = available.status.and_then(|status| status.available_replicas);
        ensure!(available == Some(2), "somebody updated the status: {available:?}");
        script(scene, played, "bootstrap.sh", true).await?;
        replaced(&before, &pods_of(scene, played, &OPERATORS).await?, &OPERATORS)?;
        scale(scene, played, replicas).await?;
    }
    Ok(())
}

/// By force they are replaced although they are well; otherwise they stay.
async fn replace_by_force(scene: &Scene, played: &mut Played) -> Result<()> {
    let before = pods_of(scene, played, &OPERATORS).await?;
    script(scene, played, "bootstrap.sh", true).await?;
    ensure!(before == pods_of(scene, played, &OPERATORS).await?, "pods of a cluster that is well were replaced");
    script(scene, played, "bootstrap.sh --force", true).await?;
    replaced(&before, &pods_of(scene, played, &OPERATORS).await?, &OPERATORS[..2])
}

async fn installed(scene: &Scene, of: &[&str]) -> Result<String> {
    labelled(scene, &format!("app.kubernetes.io/name in ({})", of.join(","))).await
}

async fn labelled(scene: &Scene, selector: &str) -> Result<String> {
    scene.cluster.kubectl(["get", INSTALLED, "--all-namespaces", "--output=name", "--selector", selector]).await
}

/// Two families come up by hand, work, and go without a trace, one after the other.
async fn move_to_families(scene: &Scene, played: &mut Played) -> Result<()> {
    for family in ["groups/workloads", "groups/batch"] {
        let folder = manifests(family);
        scene.cluster.kubectl(["apply", "-k", folder.to_str().unwrap_or_default()]).await?;
    }
    script(scene, played, "bootstrap.sh", true).await?;
    let before = pods_of(scene, played, &FAMILIES).await?;
    scale(scene, played, 4).await?;
    script(scene, played, "bootstrap.sh", true).await?;
    ensure!(before == pods_of(scene, played, &FAMILIES).await?, "pods of families that are well were replaced");
    script(scene, played, "uninstall.sh batch-group-operator", true).await?;
    let (left, others) = (installed(scene, &OF_BATCH).await?, installed(scene, &FAMILIES).await?);
    ensure!(left.is_empty() && others.contains("deployment.apps/workloads-group-operator"), "{left}\nothers: {others}");
    script(scene, played, "uninstall.sh --all", true).await?;
    nothing_left(scene).await
}

/// Nothing of any operator or of who looks at them, and no Lease.
async fn nothing_left(scene: &Scene) -> Result<()> {
    let left = labelled(scene, "app.kubernetes.io/part-of=kubernetes-operators").await?;
    let leases = scene.cluster.kubectl(["get", "leases", "--namespace=kube-system", "--output=name"]).await?;
    ensure!(left.is_empty() && !leases.contains("-operator"), "{left}\n{leases}");
    Ok(())
}

async fn take_away(scene: &Scene, played: &mut Played) -> Result<()> {
    let [deployment, replica_set, collector] = OPERATORS;
    script(scene, played, &format!("uninstall.sh {collector}"), true).await?;
    let (left, others) = (installed(scene, &[collector]).await?, installed(scene, &[deployment, replica_set]).await?);
    ensure!(left.is_empty() && others.contains("deployment.apps/deployment-operator"), "{left}\nothers: {others}");
    script(scene, played, "uninstall.sh --all", true).await?;
    nothing_left(scene).await
}

#[test]
fn operators_come_up_by_hand_recover_from_the_loss_of_all_and_go_without_a_trace() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 2, ..ClusterOptions::default() }, async |scene| {
        for folder in OPERATORS.into_iter().chain(["viewer"]) {
            let folder = manifests(folder);
            scene.cluster.kubectl(["apply", "-k", folder.to_str().unwrap_or_default()]).await?;
        }
        let mut played = Played::new(&scene.cluster).await?;
        let played = &mut played;
        fail_and_leave_nothing(scene, played).await?;
        publish_where_it_is_empty(scene, played).await?;
        scene.apply(&deployment("web", 1)).await?;
        scale(scene, played, 1).await?;
        lose_and_recover(scene, played).await?;
        replace_by_force(scene, played).await?;
        let before: Vec<String> = scene.list::<Pod>("app=web").await?.iter().map(uid_and_name).collect();
        take_away(scene, played).await?;
        move_to_families(scene, played).await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        scene.cluster.wait_controller_manager().await?;
        scale(scene, played, 5).await?;
        let after: Vec<String> = scene.list::<Pod>("app=web").await?.iter().map(uid_and_name).collect();
        ensure!(before.iter().all(|pod| after.contains(pod)), "{before:?}, then {after:?}");
        Ok(())
    })
}
