//! A pod's volume is attached to a node without a kubelet, after failures that its driver reports, and detached when the
//! pod is gone. The test plays the driver's attacher.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::attachments::{DRIVER, MANAGED, answer, attachment_of, bound};
use crate::support::kubelet::now;
use crate::support::{DEADLINE, Scene, template};

const NODE: &str = "e2e-attaching";

pub(super) const NEEDS: &[&str] = &["persistentvolume-protection-operator"];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": NODE, "annotations": {MANAGED: "true"}}}))?;
    nodes.create(&PostParams::default(), &node).await.context("create a node")?;
    let volume = bound(scene, "data").await?;
    scene.apply(&pod()).await?;
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let attachment = attachment_of(scene, &attachments, &volume).await?;
    ensure!(attachment.spec.attacher == DRIVER && attachment.spec.node_name == NODE, "{attachment:?}");
    let name = attachment.name_any();
    scene
        .wait_until("the driver's failures are told, and the event counted up", DEADLINE, async || {
            answer(&attachments, &name, &json!({"message": "no quota", "time": now()})).await?;
            let events: Vec<Event> = scene.events("FailedAttachVolume").await?;
            let most = events.iter().filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    answer(&attachments, &name, &Value::Null).await?;
    scene
        .wait_until("the node reports the volume", DEADLINE, async || {
            let attached = nodes.get(NODE).await?.status.and_then(|status| status.volumes_attached).unwrap_or_default();
            ensure!(attached.iter().any(|attached| attached.name.ends_with(&volume)), "{attached:?}");
            Ok(())
        })
        .await?;
    scene.kubectl("delete pod/web").await?;
    scene
        .wait_until("the volume is detached", DEADLINE, async || {
            let found = attachments.get_opt(&name).await?;
            ensure!(found.is_none(), "{found:?}");
            Ok(())
        })
        .await?;
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    volumes.delete(&volume, &DeleteParams::default()).await.map(drop).context("delete the volume")?;
    nodes.delete(NODE, &DeleteParams::default()).await.map(drop).context("delete the node")
}

fn pod() -> Value {
    let mut spec = template("web")["spec"].clone();
    spec["nodeName"] = json!(NODE);
    spec["terminationGracePeriodSeconds"] = json!(0);
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let lost = json!([{"name": format!("kubernetes.io/csi/{DRIVER}^lost"), "devicePath": ""}]);
    let patch = Patch::Merge(json!({"status": {"volumesAttached": lost}}));
    nodes.patch_status("node-0", &PatchParams::default(), &patch).await?;
    Ok("patch nodes/status node-0: status.volumesAttached".to_owned())
}
