//! Roles for every kind, and the policies that say what may be done with them.
//! Left out: that the operators themselves get along with their policies. Every test shows it, for they are in place
//! wherever operators are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::kubectl::kustomize;
use e2e::operator::Installed;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::clusters::manifests;
use crate::support::{DEADLINE, Scene, template, without_kubelets};

/// The account of an operator, as somebody would use it who took it over.
async fn taken_over(scene: &Scene, operator: &str) -> Result<PathBuf> {
    let account = Installed { namespace: "kube-system".to_owned(), service_account: operator.to_owned() };
    let name = format!("{}-{operator}", scene.namespace);
    scene.cluster.write_kubeconfig(&name, &account, &scene.cluster.server()?).await
}

async fn kubectl(scene: &Scene, account: &Path, words: &[&str]) -> Result<String> {
    let kubeconfig = format!("--kubeconfig={}", account.display());
    let namespace = format!("--namespace={}", scene.namespace);
    let words = [kubeconfig.as_str(), namespace.as_str()].into_iter().chain(words.iter().copied());
    scene.cluster.kubectl(words).await
}

/// It is the policy that refuses this, with these words, and not a role.
async fn refused(scene: &Scene, account: &Path, words: &[&str], why: &str) -> Result<()> {
    let what = format!("{words:?} is refused");
    let answer = scene.wait_until(&what, DEADLINE, async || match kubectl(scene, account, words).await {
        Err(refusal) => Ok(format!("{refusal:#}")),
        Ok(done) => Err(anyhow::anyhow!("it was done: {done}")),
    });
    let answer = answer.await?;
    ensure!(answer.contains("ValidatingAdmissionPolicy") && answer.contains(why), "{words:?}: {answer}");
    Ok(())
}

async fn config_map(scene: &Scene, name: &str) -> Result<ConfigMap> {
    scene
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}))
        .await?;
    scene.fetch(name).await
}

/// An overlay in this folder, with paths to manifests as kustomize wants them.
fn overlay(folder: &Path, content: &Value) -> Result<()> {
    std::fs::create_dir_all(folder).context("make a folder for an overlay")?;
    std::fs::write(folder.join("kustomization.yaml"), content.to_string()).context("write an overlay")
}

#[test]
fn a_policy_follows_its_account_to_another_name_and_namespace() -> Result<()> {
    crate::support::scene::runtime()?.block_on(async {
        for operator in ["garbage-collector-operator", "namespace-operator", "storage-version-migrator-operator"] {
            let folder = tempfile::tempdir().context("make a folder for overlays")?;
            let up = "../".repeat(folder.path().components().count() + 1);
            let path = |of: &str| Ok::<_, anyhow::Error>(format!("{up}{}", manifests(of).canonicalize()?.display()));
            let renamed = json!({"namePrefix": "acme-", "namespace": "platform", "resources": [path(operator)?]});
            overlay(&folder.path().join("renamed"), &renamed)?;
            let component = path(&format!("components/renamed/{operator}"))?;
            let outer = folder.path().join("outer");
            overlay(&outer, &json!({"resources": ["../renamed"], "components": [component]}))?;
            let objects = kustomize(&outer).await?;
            let policy = objects.iter().find(|object| object["kind"] == "ValidatingAdmissionPolicy");
            let policy = policy.context("a policy")?;
            let expected = format!(
                "request.userInfo.username == ['system', 'serviceaccount', 'platform', 'acme-{operator}'].join(':')"
            );
            ensure!(policy["spec"]["matchConditions"][0]["expression"] == json!(expected), "{policy}");
        }
        Ok(())
    })
}

fn merge(patch: &Value) -> String {
    format!("--patch={patch}")
}

#[test]
fn the_collectors_account_changes_finalizers_and_owners_alone_and_connects_to_nothing() -> Result<()> {
    without_kubelets(async |scene| {
        let collector = taken_over(scene, "garbage-collector-operator").await?;
        let owner = config_map(scene, "owner").await?;
        config_map(scene, "target").await?;
        let mut pod = template("pod");
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!("pod");
        scene.apply(&pod).await?;

        let patch = async |object: &[&str], patch: &Value, why: &str| {
            let patch = merge(patch);
            let words: Vec<&str> =
                ["patch", "--type=merge", &patch].into_iter().chain(object.iter().copied()).collect();
            refused(scene, &collector, &words, why).await
        };
        let target = ["configmap/target"];
        // A policy takes a moment to be in force.
        let rehearsed = ["configmap/target", "--dry-run=server"];
        patch(&rehearsed, &json!({"data": {"a": "2"}}), "nothing outside of metadata").await?;
        patch(&target, &json!({"data": null}), "nothing outside of metadata").await?;
        patch(&target, &json!({"metadata": {"labels": {"a": "b"}}}), "no other metadata").await?;
        patch(&target, &json!({"metadata": {"annotations": {"a": "b"}}}), "no other metadata").await?;
        patch(&["node/node-0"], &json!({"spec": {"unschedulable": true}}), "nothing outside of metadata").await?;
        let status = ["node/node-0", "--subresource=status"];
        patch(&status, &json!({"status": {"phase": "x"}}), "no subresource").await?;
        let proxy = format!("/api/v1/namespaces/{}/pods/pod/proxy/", scene.namespace);
        refused(scene, &collector, &["get", "--raw", &proxy], "connects to nothing").await?;
        refused(scene, &collector, &["get", "--raw", "/api/v1/nodes/node-0/proxy/pods"], "connects to nothing").await?;

        let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid()});
        let allowed = [
            json!({"metadata": {"ownerReferences": [reference], "finalizers": ["e2e/keep"]}}),
            json!({"metadata": {"ownerReferences": null, "finalizers": null}}),
        ];
        for change in allowed {
            let patch = merge(&change);
            kubectl(scene, &collector, &["patch", "configmap/target", "--type=merge", &patch]).await?;
        }
        kubectl(scene, &collector, &["delete", "configmap/target"]).await.map(drop).context("delete")
    })
}

#[test]
fn the_namespace_operators_account_deletes_only_where_the_namespace_goes() -> Result<()> {
    without_kubelets(async |scene| {
        let account = taken_over(scene, "namespace-operator").await?;
        config_map(scene, "target").await?;
        let why = "only in namespaces that are being deleted";
        let collection = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
        // A policy takes a moment to be in force.
        refused(scene, &account, &["delete", "configmap/target", "--dry-run=server"], why).await?;
        refused(scene, &account, &["delete", "configmap/target"], why).await?;
        refused(scene, &account, &["delete", "--raw", &collection], why).await?;
        refused(scene, &account, &["delete", "--raw", &format!("/api/v1/namespaces/{}", scene.namespace)], why).await?;
        refused(scene, &account, &["delete", "node/node-0"], why).await?;
        let proxy = format!("/api/v1/namespaces/{}/pods/pod/proxy/", scene.namespace);
        refused(scene, &account, &["delete", "--raw", &proxy], "connects to nothing").await?;

        let kept = json!({"metadata": {"finalizers": ["e2e/keep"]}});
        let doomed = scene.beside("doomed").await?;
        config_map(&doomed, "target").await?;
        doomed.patch::<ConfigMap>("target", &kept).await?;
        doomed.delete_namespace().await?;
        kubectl(&doomed, &account, &["delete", "configmap/target", "--wait=false"]).await?;
        doomed.patch::<ConfigMap>("target", &json!({"metadata": {"finalizers": null}})).await?;
        doomed.namespace_gone().await
    })
}

#[test]
fn the_migrators_account_writes_objects_only_as_they_are() -> Result<()> {
    without_kubelets(async |scene| {
        let account = taken_over(scene, "storage-version-migrator-operator").await?;
        let target = config_map(scene, "target").await?;
        // kubectl reads an object before it patches it, which this account may not.
        let maps: Api<ConfigMap> = Api::namespaced(e2e::kubeconfig::client(&account).await?, &scene.namespace);
        let patch = async |change: &Value, dry_run: bool| {
            let params = PatchParams { dry_run, ..PatchParams::default() };
            maps.patch("target", &params, &Patch::Merge(change)).await
        };
        let refused = async |change: Value, dry_run: bool, why: &str| {
            let what = format!("{change} is refused");
            let answer = scene.wait_until(&what, DEADLINE, async || match patch(&change, dry_run).await {
                Err(refusal) => Ok(refusal.to_string()),
                Ok(done) => Err(anyhow::anyhow!("it was done: {done:?}")),
            });
            let answer = answer.await?;
            ensure!(answer.contains("ValidatingAdmissionPolicy") && answer.contains(why), "{change}: {answer}");
            Ok(())
        };
        // A policy takes a moment to be in force.
        refused(json!({"data": {"a": "2"}}), true, "nothing outside of metadata").await?;
        refused(json!({"data": null}), false, "nothing outside of metadata").await?;
        refused(json!({"metadata": {"labels": {"a": "b"}}}), false, "no metadata").await?;
        refused(json!({"metadata": {"finalizers": ["e2e/keep"]}}), false, "no metadata").await?;
        let as_it_is = json!({"metadata": {"uid": target.uid(), "resourceVersion": target.resource_version()}});
        patch(&as_it_is, false).await.map(drop).context("write it as it is")
    })
}
