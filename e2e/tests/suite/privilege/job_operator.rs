//! Jobs that adopt, and that have made too many pods.

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use crate::batch;
use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let mut adopting = batch::running(batch::job("adopting", 1, 1));
    adopting["spec"]["manualSelector"] = json!(true);
    adopting["spec"]["selector"] = json!({"matchLabels": {"app": "adopting"}});
    let template = &adopting["spec"]["template"];
    scene
        .apply(&json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": {"app": "adopting"}},
            "spec": template["spec"],
        }))
        .await?;
    scene.apply(&adopting).await?;
    scene.apply(&batch::running(batch::job("shrinking", 2, 2))).await?;
    scene
        .wait_until("both have what they asked for", DEADLINE, async || {
            for (name, active) in [("adopting", 1), ("shrinking", 2)] {
                let status = batch::status(scene, name).await?;
                ensure!(status.active == Some(active), "{name}: {status:?}");
            }
            Ok(())
        })
        .await?;
    scene.patch::<Job>("shrinking", &json!({"spec": {"parallelism": 1}})).await?;
    scene
        .wait_until("one pod was too many", DEADLINE, async || {
            let status = batch::status(scene, "shrinking").await?;
            ensure!(status.active == Some(1), "{status:?}");
            Ok(())
        })
        .await
}
