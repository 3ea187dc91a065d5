//! Claims of pods from a template, a template that is missing, a claim that is reserved for a pod with a node and freed
//! after it, and a claim that goes before its pod.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::devices::has_claim;
use crate::support::{DEADLINE, Scene, template};

const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
const SHARED: &str = "shared";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    scene.apply(&claim_template("device")).await?;
    scene.apply(&user("lost", &json!({"resourceClaimTemplateName": "none"}))).await?;
    delete_a_claim_before_its_pod(scene).await?;
    free_a_claim_after_its_pod(scene).await?;
    scene
        .wait_until("the missing template is reported, and its event counted up", DEADLINE, async || {
            let events: Vec<Event> = scene.events("FailedResourceClaimCreation").await?;
            let most = events.iter().filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await
}

/// Nothing has such devices, so the pod gets no node. Another's finalizer holds it while it is being deleted.
async fn delete_a_claim_before_its_pod(scene: &Scene) -> Result<()> {
    let mut waiting = user("waiting", &json!({"resourceClaimTemplateName": "device"}));
    waiting["metadata"]["finalizers"] = json!(["e2e.example/hold"]);
    scene.apply(&waiting).await?;
    let claim = has_claim(scene, "waiting").await?;
    let made: ResourceClaim = scene.fetch(&claim).await?;
    ensure!(made.owner_references().iter().any(|owner| owner.name == "waiting"), "{made:?}");
    scene.kubectl("delete pod/waiting --wait=false").await?;
    scene.gone::<ResourceClaim>(&claim).await?;
    scene.patch::<Pod>("waiting", &json!({"metadata": {"finalizers": null}})).await?;
    scene.gone::<Pod>("waiting").await
}

/// The test allocates the claim, as the scheduler would, and reserves it for a pod that is not there.
async fn free_a_claim_after_its_pod(scene: &Scene) -> Result<()> {
    let mut claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": devices()});
    claim["metadata"] = json!({"name": SHARED, "finalizers": [FINALIZER]});
    scene.apply(&claim).await?;
    let nobody = json!({"resource": "pods", "name": "nobody", "uid": "00000000-0000-4000-8000-000000000000"});
    let status = json!({"allocation": {"devices": {}}, "reservedFor": [nobody]});
    scene.patch_status::<ResourceClaim>(SHARED, &json!({"status": status})).await?;
    scene
        .wait_until("nobody has the claim any more, and it is not allocated", DEADLINE, async || {
            let claim: ResourceClaim = scene.fetch(SHARED).await?;
            let status = claim.status.clone().unwrap_or_default();
            ensure!(status.allocation.is_none() && claim.finalizers().is_empty(), "{claim:?}");
            Ok(())
        })
        .await?;
    scene.patch::<ResourceClaim>(SHARED, &json!({"metadata": {"finalizers": [FINALIZER]}})).await?;
    let allocated = json!({"status": {"allocation": {"devices": {}}}});
    scene.patch_status::<ResourceClaim>(SHARED, &allocated).await?;
    let mut bound = user("bound", &json!({"resourceClaimName": SHARED}));
    bound["spec"]["nodeName"] = json!("node-0");
    scene.apply(&bound).await?;
    scene
        .wait_until("the claim is reserved for the pod", DEADLINE, async || {
            let users = scene.fetch::<ResourceClaim>(SHARED).await?.status.unwrap_or_default().reserved_for;
            ensure!(users.iter().flatten().any(|user| user.name == "bound"), "{users:?}");
            Ok(())
        })
        .await?;
    scene.kubectl(&format!("delete resourceclaim/{SHARED} --wait=false")).await?;
    scene.kubectl("delete pod/bound --grace-period=0 --force").await?;
    scene.gone::<ResourceClaim>(SHARED).await
}

fn devices() -> Value {
    let request = json!({"name": "device", "exactly": {"deviceClassName": "e2e.example"}});
    json!({"devices": {"requests": [request]}})
}

fn claim_template(name: &str) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
        "spec": {"spec": devices()}})
}

/// A pod with this claim.
fn user(name: &str, claim: &Value) -> Value {
    let mut spec = template(name)["spec"].clone();
    let mut entry = claim.clone();
    entry["name"] = json!("device");
    spec["resourceClaims"] = json!([entry]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.apply(&claim_template("tampered")).await?;
    scene.apply(&user("claimant", &json!({"resourceClaimTemplateName": "tampered"}))).await?;
    Ok(format!("create resourceclaims.resource.k8s.io {}/claimant-device-: ", scene.namespace))
}
