//! A quota of several kinds, one of them known only by discovery: what is created is charged, and what goes is given
//! back.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let hard = json!({"services": "5", "services.nodeports": "5", "secrets": "5", "pods": "5",
        "count/leases.coordination.k8s.io": "5", "requests.storage": "5Gi"});
    let quota =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": hard}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "open"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept"}});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "held"}});
    for object in [&service, &secret, &lease, &quota] {
        scene.apply(object).await?;
    }
    uses(
        scene,
        &json!({"services": "1", "services.nodeports": "1", "secrets": "1",
        "count/leases.coordination.k8s.io": "1", "requests.storage": "0", "pods": "0"}),
    )
    .await?;
    scene.kubectl("delete service/open secret/kept lease/held").await?;
    uses(
        scene,
        &json!({"services": "0", "services.nodeports": "0", "secrets": "0",
        "count/leases.coordination.k8s.io": "0", "requests.storage": "0", "pods": "0"}),
    )
    .await?;
    scene.kubectl("delete resourcequota/team").await.map(drop)
}

async fn uses(scene: &Scene, expected: &Value) -> Result<()> {
    scene
        .wait_until(&format!("the quota has the usage {expected}"), DEADLINE, async || {
            let status = scene.fetch::<ResourceQuota>("team").await?.status.unwrap_or_default();
            let used = serde_json::to_value(status.used)?;
            ensure!(used == *expected, "{used}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.kubectl("delete lease/counted").await?;
    let used = "status.used[count/leases.coordination.k8s.io]";
    Ok(format!("patch resourcequotas/status {}/team: {used}: ", scene.namespace))
}
