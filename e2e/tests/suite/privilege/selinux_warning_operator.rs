//! Two pods mount one volume with different labels, and are told again when one of them comes back under its name. Two
//! others share a claim whose driver mounts with a label, and only one of them has a label.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, PersistentVolume};
use k8s_openapi::api::storage::v1::CSIDriver;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::support::attachments::bound_to;
use crate::support::{DEADLINE, Scene, template};

pub(super) const NEEDS: &[&str] = &["persistentvolume-protection-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let iscsi =
        json!({"targetPortal": "192.0.2.1:3260", "iqn": format!("iqn.2026-01.example:{}", scene.namespace), "lun": 0});
    let on_disk = |name: &str, level: &str| user(name, level, &json!({"name": "data", "iscsi": iscsi}));
    scene.apply(&on_disk("first", "s0:c1,c2")).await?;
    scene.apply(&on_disk("second", "s0:c3,c4")).await?;
    let message = conflict("SELinuxLabel", ":::s0:c1,c2", "second", ":::s0:c3,c4");
    told(scene, "first", &message, 1).await?;
    scene.kubectl("delete pod/second --wait").await?;
    scene.apply(&on_disk("second", "s0:c3,c4")).await?;
    told(scene, "first", &message, 2).await?;

    let drivers: Api<CSIDriver> = Api::all(scene.client.clone());
    let name = format!("{}.example", scene.namespace);
    let driver = json!({"metadata": {"name": name}, "spec": {"seLinuxMount": true, "attachRequired": false}});
    drivers.create(&PostParams::default(), &serde_json::from_value(driver)?).await.context("create the driver")?;
    let source = json!({"driver": name, "volumeHandle": "1"});
    let volume = bound_to(scene, "data", "1Gi", ("csi", source)).await?;
    let claimed = |name: &str, level: &str| {
        user(name, level, &json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}}))
    };
    scene.apply(&claimed("third", "s0:c5")).await?;
    scene.apply(&claimed("fourth", "")).await?;
    let message = conflict("SELinuxChangePolicy", "Recursive", "third", "MountOption");
    told(scene, "fourth", &message, 1).await?;
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    volumes.delete(&volume, &DeleteParams::default()).await.map(drop).context("delete the volume")?;
    drivers.delete(&name, &DeleteParams::default()).await.map(drop).context("delete the driver")
}

/// What a pod with this value of a property is told of another one.
fn conflict(property: &str, value: &str, other: &str, other_value: &str) -> String {
    format!(
        "{property} \"{value}\" conflicts with pod {other} that uses the same volume as this pod with {property} \
         \"{other_value}\". If both pods land on the same node, only one of them may access the volume."
    )
}

/// Waits until this pod was told so, so many times.
async fn told(scene: &Scene, pod: &str, message: &str, times: i32) -> Result<()> {
    scene
        .wait_until(&format!("{pod} is told {times} times"), DEADLINE, async || {
            let events: Vec<Event> = scene.list("").await?;
            let about = |event: &&Event| event.involved_object.name.as_deref() == Some(pod);
            let same = |event: &&Event| event.message.as_deref() == Some(message);
            let most = events.iter().filter(about).filter(same).filter_map(|event| event.count).max();
            ensure!(most >= Some(times), "the highest count is {most:?}");
            Ok(())
        })
        .await
}

/// A pod that no node runs.
fn user(name: &str, level: &str, volume: &Value) -> Value {
    let mut spec = template(name)["spec"].clone();
    spec["nodeSelector"] = json!({"e2e.example/none": "true"});
    spec["volumes"] = json!([volume]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    if !level.is_empty() {
        spec["securityContext"] = json!({"seLinuxOptions": {"level": level}});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}
