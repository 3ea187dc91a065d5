//! A driver taints its only device twice: each time a pod goes, and one that tolerates that for a while stays. Then a rule
//! ends a pod, and tells so.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, template};

/// Without a kubelet.
const NODE: &str = "with-devices";
const DRIVER: &str = "e2e.example";
const DEVICE: &str = "device";
const RULE: &str = "e2e-rule";
const KEY: &str = "e2e.example/broken";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    super::add_node(scene, NODE, &json!({}), &json!({})).await?;
    let pool = format!("{}-pool", scene.namespace);
    taint(scene, &pool, &json!([])).await?;
    let for_an_hour = json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}]);
    add_user(scene, &pool, "stays", &for_an_hour).await?;
    for round in 1..=2 {
        add_user(scene, &pool, "goes", &json!([])).await?;
        taint(scene, &pool, &json!([{"key": KEY, "effect": "NoExecute"}])).await?;
        scene.gone::<Pod>("goes").await?;
        taint(scene, &pool, &json!([])).await?;
        canceled(scene, round).await?;
        scene.kubectl("delete resourceclaim/goes").await?;
    }
    scene.kubectl("delete pod/stays resourceclaim/stays").await?;
    add_user(scene, &pool, "ruled", &json!([])).await?;
    apply(&scene.client, "", &rule(&pool)).await?;
    scene.gone::<Pod>("ruled").await?;
    scene
        .wait_until("the rule tells that a pod was evicted", DEADLINE, async || {
            let told = scene.kubectl(&format!("get devicetaintrule/{RULE} --output=yaml")).await?;
            ensure!(told.contains("1 pod evicted since starting the controller."), "{told}");
            Ok(())
        })
        .await?;
    scene.kubectl(&format!("delete resourceclaim/ruled devicetaintrule/{RULE}")).await?;
    scene.kubectl(&format!("delete resourceslice/{pool} node/{NODE}")).await.map(drop)
}

/// Publishes the device with these taints.
async fn taint(scene: &Scene, pool: &str, taints: &Value) -> Result<()> {
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": pool},
        "spec": {
            "driver": DRIVER, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}, "allNodes": true,
            "devices": [{"name": DEVICE, "taints": taints}],
        },
    });
    apply(&scene.client, "", &slice).await.map(drop)
}

fn rule(pool: &str) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": RULE},
        "spec": {"deviceSelector": {"pool": pool}, "taint": {"key": KEY, "effect": "NoExecute"}},
    })
}

/// A pod without a kubelet that uses the device, by a claim of its name with these tolerations.
async fn add_user(scene: &Scene, pool: &str, name: &str, tolerations: &Value) -> Result<()> {
    let mut spec = template(name)["spec"].clone();
    spec["nodeName"] = json!(NODE);
    spec["terminationGracePeriodSeconds"] = json!(0);
    spec["resourceClaims"] = json!([{"name": DEVICE, "resourceClaimName": name}]);
    // It is not evicted from the node.
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    let pod: DynamicObject = scene.apply(&pod).await?;
    let request = json!({"name": DEVICE, "exactly": {"deviceClassName": DRIVER}});
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    });
    scene.apply(&claim).await?;
    let result =
        json!({"request": DEVICE, "driver": DRIVER, "pool": pool, "device": DEVICE, "tolerations": tolerations});
    let uid = pod.uid().context("a pod has a uid")?;
    let status = json!({"status": {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
    }});
    scene.patch_status::<ResourceClaim>(name, &status).await.map(drop)
}

/// Waits until people were told so often that the pod stays.
async fn canceled(scene: &Scene, times: i32) -> Result<()> {
    scene
        .wait_until("the deletion is canceled", DEADLINE, async || {
            let events: Vec<Event> = scene.events("DeviceTaintManagerEviction").await?;
            let about_it = events.iter().filter(|event| event.message.as_deref() == Some("Cancelling deletion"));
            let told: i32 = about_it.filter_map(|event| event.count).sum();
            ensure!(told >= times, "{told} times");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    super::add_node(scene, NODE, &json!({}), &json!({})).await?;
    let pool = format!("{}-pool", scene.namespace);
    add_user(scene, &pool, "broken", &json!([])).await?;
    taint(scene, &pool, &json!([{"key": KEY, "effect": "NoExecute"}])).await?;
    Ok(format!("patch pods/status {}/broken: status.conditions", scene.namespace))
}
