//! What kustomize makes of the manifests, as they are and in overlays that rename or move them.
//! Left out: that an apiserver takes them, which every other test shows.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::kubectl::kustomize;
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::support::clusters::manifests;

/// The folders that are applied as a whole.
const WHOLE: [&str; 3] = [".", "groups", "one-process"];
/// Folders with Roles that all follow when an overlay moves them to another namespace.
const MOVABLE: [&str; 4] =
    ["groups/batch", "one-process/process", "storageversion-garbage-collector-operator", "token-cleaner-operator"];

/// The objects of an overlay of a folder.
async fn render(folder: &str, overlay: &Value) -> Result<Vec<Value>> {
    let outer = tempfile::tempdir().context("make a folder for an overlay")?;
    // kustomize takes no absolute paths.
    let up = "../".repeat(outer.path().components().count());
    let mut overlay = overlay.clone();
    overlay["resources"] = json!([format!("{up}{}", manifests(folder).canonicalize()?.display())]);
    std::fs::write(outer.path().join("kustomization.yaml"), overlay.to_string()).context("write an overlay")?;
    kustomize(outer.path()).await
}

/// The bindings of accounts that are not among these objects.
fn bindings_of_nobody(objects: &[Value]) -> Vec<String> {
    let name = |object: &Value| format!("{}/{}", object["namespace"], object["name"]);
    let accounts = objects.iter().filter(|object| object["kind"] == "ServiceAccount");
    let accounts: BTreeSet<String> = accounts.map(|account| name(&account["metadata"])).collect();
    let mut lost = Vec::new();
    for object in objects {
        let subjects = object["subjects"].as_array().into_iter().flatten();
        let unknown = subjects.filter(|subject| !accounts.contains(&name(subject)));
        lost.extend(
            unknown.map(|subject| format!("{} {} is for {}", object["kind"], name(&object["metadata"]), name(subject))),
        );
    }
    lost
}

/// Checks an overlay of each folder.
fn check(folders: &[&str], overlay: &Value) -> Result<()> {
    crate::support::scene::runtime()?.block_on(async {
        try_join_all(folders.iter().map(async |folder| {
            let objects = render(folder, overlay).await?;
            let lost = bindings_of_nobody(&objects);
            ensure!(lost.is_empty(), "{folder} with {overlay}: {}", lost.join("\n"));
            ensure!(objects.iter().any(|object| object["subjects"].is_array()), "{folder}: binds no account");
            Ok(())
        }))
        .await
        .map(drop)
    })
}

#[test]
fn each_binding_is_for_an_account_that_is_rendered_too() -> Result<()> {
    check(&WHOLE, &json!({}))
}

#[test]
fn bindings_follow_accounts_that_an_overlay_renames() -> Result<()> {
    check(&WHOLE, &json!({"nameSuffix": "-shadow"}))
}

#[test]
fn bindings_follow_accounts_that_an_overlay_moves() -> Result<()> {
    check(&MOVABLE, &json!({"namePrefix": "acme-", "namespace": "platform"}))
}
