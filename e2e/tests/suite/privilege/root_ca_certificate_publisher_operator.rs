//! A namespace gets the CA, and what somebody has made of it is set right.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    scene
        .wait_until("the CA is published", DEADLINE, async || {
            scene.fetch::<ConfigMap>("kube-root-ca.crt").await.map(drop)
        })
        .await?;
    let changed: ConfigMap = scene.patch("kube-root-ca.crt", &json!({"data": {"more": "x"}})).await?;
    scene
        .wait_until("it is set right", DEADLINE, async || {
            let now: ConfigMap = scene.fetch("kube-root-ca.crt").await?;
            ensure!(now.metadata.resource_version != changed.metadata.resource_version, "it is as it was");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.cluster.kubectl("--namespace shadow-0 delete configmap/kube-root-ca.crt".split(' ')).await?;
    Ok("create configmaps shadow-0/kube-root-ca.crt: ".to_owned())
}
