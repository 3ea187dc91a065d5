//! A group that is being deleted and goes after its last pod.

use anyhow::{Context, Result, ensure};
use e2e::cluster::pod_group_version;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};

use crate::support::{Scene, template};

const KIND: &str = "PodGroup";
const NAME: &str = "group";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let api_version = format!("scheduling.k8s.io/{}", pod_group_version());
    let groups: Api<DynamicObject> = e2e::apply::api(&scene.client, &api_version, KIND, &scene.namespace).await?;
    let spec = json!({"schedulingPolicy": {"basic": {}}});
    scene.apply(&json!({"apiVersion": api_version, "kind": KIND, "metadata": {"name": NAME}, "spec": spec})).await?;
    scene.apply(&user("user")).await?;
    groups.delete(NAME, &DeleteParams::default()).await.map(drop).context("delete the group")?;
    let going = groups.get(NAME).await?;
    ensure!(going.metadata.deletion_timestamp.is_some(), "a pod names it: {going:?}");
    scene.kubectl("delete pod/user --grace-period=0 --force").await?;
    scene.gone::<Pod>("user").await?;
    scene.gone_from(&groups, NAME).await
}

fn user(name: &str) -> Value {
    let mut spec = template(name)["spec"].clone();
    spec["nodeName"] = json!("node-0");
    spec["schedulingGroup"] = json!({"podGroupName": NAME});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}
