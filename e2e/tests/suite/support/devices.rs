//! Devices that no program drives: the scheduler allocates them, and no kubelet prepares them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::objects::is_ready;
use super::{DEADLINE, Scene, template};

const DRIVER: &str = "devices.e2e.example";
const KEY: &str = "e2e.example/broken";

/// Makes the class of all of them.
pub(crate) async fn device_class(scene: &Scene) -> Result<()> {
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": format!("device.driver == {DRIVER:?}")}}]}});
    apply(&scene.client, "", &class).await.map(drop)
}

/// Publishes a pool of one device that every node has, with these taints.
pub(crate) async fn device(scene: &Scene, name: &str, taints: &Value) -> Result<()> {
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
        "spec": {
            "driver": DRIVER, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}, "allNodes": true,
            "devices": [{"name": name, "taints": taints, "attributes": {"name": {"string": name}}}],
        },
    });
    apply(&scene.client, "", &slice).await.map(drop)
}

pub(crate) fn tainted() -> Value {
    json!([{"key": KEY, "effect": "NoExecute"}])
}

/// The spec of a claim of this device, whose taint is tolerated for so long.
fn claim_spec(device: &str, tolerated: Duration) -> Value {
    let selector = json!({"cel": {"expression": format!("device.attributes[{DRIVER:?}].name == {device:?}")}});
    let tolerations = json!([{"key": KEY, "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": tolerated.as_secs()}]);
    let request = json!({"name": "device", "exactly":
        {"deviceClassName": DRIVER, "selectors": [selector], "tolerations": tolerations}});
    json!({"devices": {"requests": [request]}})
}

/// A template for claims of the device of this name.
pub(crate) async fn claim_template(scene: &Scene, name: &str, tolerated: Duration) -> Result<()> {
    let template = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": name}, "spec": {"spec": claim_spec(name, tolerated)}});
    scene.apply(&template).await.map(drop)
}

/// A claim of this device that belongs to no pod.
pub(crate) fn claim_of(name: &str, device: &str) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
        "spec": claim_spec(device, Duration::ZERO)})
}

/// A pod with a claim from the template of this name.
pub(crate) async fn user(scene: &Scene, name: &str, of_template: &str) -> Result<()> {
    with_claim(scene, name, &json!({"resourceClaimTemplateName": of_template})).await
}

/// A pod with this claim.
pub(crate) async fn sharing(scene: &Scene, name: &str, claim: &str) -> Result<()> {
    with_claim(scene, name, &json!({"resourceClaimName": claim})).await
}

async fn with_claim(scene: &Scene, name: &str, claim: &Value) -> Result<()> {
    let mut spec = template(name)["spec"].clone();
    let mut entry = claim.clone();
    entry["name"] = json!("device");
    spec["resourceClaims"] = json!([entry]);
    let metadata = json!({"name": name, "labels": {"app": name}});
    scene.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})).await.map(drop)
}

pub(crate) async fn runs(scene: &Scene, name: &str) -> Result<()> {
    scene
        .wait_until(&format!("{name} runs"), DEADLINE, async || {
            let pod: Pod = scene.fetch(name).await?;
            ensure!(is_ready(&pod), "{:?}", pod.status);
            Ok(())
        })
        .await
}

/// The claims of a pod.
pub(crate) async fn claims_of(scene: &Scene, pod: &str) -> Result<Vec<ResourceClaim>> {
    let mut claims: Vec<ResourceClaim> = scene.list("").await?;
    claims.retain(|claim| claim.owner_references().iter().any(|owner| owner.name == pod));
    Ok(claims)
}

/// Waits until the pod has its claim, and it is recorded; gives the claim's name.
pub(crate) async fn has_claim(scene: &Scene, pod: &str) -> Result<String> {
    scene
        .wait_until(&format!("{pod} has its claim"), DEADLINE, async || {
            let status = scene.fetch::<Pod>(pod).await?.status.unwrap_or_default();
            let recorded = status.resource_claim_statuses.into_iter().flatten().next();
            recorded.and_then(|recorded| recorded.resource_claim_name).context("none is recorded")
        })
        .await
}
