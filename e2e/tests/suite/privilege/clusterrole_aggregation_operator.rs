//! A role with an aggregation rule gets the rules of another, again when somebody has taken them away, and loses them
//! with it. The operator has none of these rights itself.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

const WHOLE: &str = "e2e-aggregated";
const PART: &str = "e2e-aggregated-part";
const LABEL: &str = "e2e.example/aggregate-to-whole";
/// Upstream's.
const FIELD_MANAGER: &str = "clusterrole-aggregation-controller";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(scene.client.clone());
    let mut whole = role(WHOLE);
    whole["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {LABEL: "true"}}]});
    apply(&scene.client, "", &whole).await?;
    let mut part = role(PART);
    part["metadata"]["labels"] = json!({LABEL: "true"});
    part["rules"] = json!([{"apiGroups": ["e2e.example"], "resources": ["widgets"], "verbs": ["get"]}]);
    apply(&scene.client, "", &part).await?;
    has_rules(scene, &roles, 1).await?;
    let managers: Vec<_> =
        roles.get(WHOLE).await?.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
    ensure!(managers.iter().any(|manager| manager == FIELD_MANAGER), "the managers of {WHOLE} are {managers:?}");

    let emptied = Patch::Merge(json!({"rules": []}));
    roles.patch(WHOLE, &PatchParams::default(), &emptied).await.context("take the rules away")?;
    has_rules(scene, &roles, 1).await?;
    roles.delete(PART, &DeleteParams::default()).await.context("delete the part")?;
    has_rules(scene, &roles, 0).await?;
    roles.delete(WHOLE, &DeleteParams::default()).await.map(drop).context("delete the whole")
}

fn role(name: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}})
}

async fn has_rules(scene: &Scene, roles: &Api<ClusterRole>, count: usize) -> Result<()> {
    scene
        .wait_until(&format!("{WHOLE} has {count} rules"), DEADLINE, async || {
            let rules = roles.get(WHOLE).await?.rules.unwrap_or_default();
            ensure!(rules.len() == count, "{rules:?}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let roles: Api<ClusterRole> = Api::all(scene.client.clone());
    roles.patch("admin", &PatchParams::default(), &Patch::Merge(json!({"rules": []}))).await?;
    Ok("patch clusterroles.rbac.authorization.k8s.io admin: rules: ".to_owned())
}
