//! A group that is being deleted and goes after its last pod.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};

use crate::support::{Scene, template};

const API_VERSION: &str = "scheduling.k8s.io/v1alpha2";
const KIND: &str = "PodGroup";
const NAME: &str = "group";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let groups: Api<DynamicObject> = e2e::apply::api(&scene.client, API_VERSION, KIND, &scene.namespace).await?;
    let spec = json!({"schedulingPolicy": {"basic": {}}});
    scene.apply(&json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": NAME}, "spec": spec})).await?;
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
