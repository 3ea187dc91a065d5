//! A policy is told what is wrong with the types of its expressions, about a built-in kind and about a custom one, and again
//! once it has been edited.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

const POLICY: &str = "e2e-typed";
/// Upstream's.
const FIELD_MANAGER: &str = "validatingadmissionpolicy-status";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(scene.client.clone());
    let expressions = ["object.spec.replicas > 1", "object.spec.replicas > '1'", "object.spec.replica == 1"];
    apply(&scene.client, "", &policy(POLICY, &expressions)).await?;
    has_warnings(
        scene,
        &policies,
        &[
            (
                "spec.validations[1].expression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to \
                 '(int, string)'\n | object.spec.replicas > '1'\n | .....................^\n",
            ),
            (
                "spec.validations[2].expression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n | object.spec.replica == 1\n \
                 | ...........^\n",
            ),
        ],
    )
    .await?;
    let managers: Vec<_> =
        policies.get(POLICY).await?.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
    ensure!(managers.iter().any(|manager| manager == FIELD_MANAGER), "the managers of {POLICY} are {managers:?}");

    apply(&scene.client, "", &policy(POLICY, &expressions[..1])).await?;
    has_warnings(scene, &policies, &[]).await?;
    policies.delete(POLICY, &DeleteParams::default()).await.map(drop).context("delete the policy")
}

/// A policy about Deployments, without a binding.
fn policy(name: &str, expressions: &[&str]) -> Value {
    let validations: Vec<Value> = expressions.iter().map(|expression| json!({"expression": expression})).collect();
    let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations},
    })
}

async fn has_warnings(
    scene: &Scene,
    policies: &Api<ValidatingAdmissionPolicy>,
    expected: &[(&str, &str)],
) -> Result<()> {
    scene
        .wait_until(&format!("{POLICY} has {} warnings", expected.len()), DEADLINE, async || {
            let policy = policies.get(POLICY).await?;
            let generation = policy.metadata.generation;
            let status = policy.status.context("no status")?;
            ensure!(status.observed_generation == generation, "{:?} of {generation:?}", status.observed_generation);
            // An apiserver drops the field once it is empty.
            let warnings = status.type_checking.and_then(|checked| checked.expression_warnings).unwrap_or_default();
            let found: Vec<_> = warnings.iter().map(|warning| (&*warning.field_ref, &*warning.warning)).collect();
            ensure!(found == expected, "{found:#?}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    apply(&scene.client, "", &policy("tampered", &["object.spec.replicas > 1"])).await?;
    Ok("patch validatingadmissionpolicies.admissionregistration.k8s.io/status tampered: status.observedGeneration"
        .to_owned())
}
