//! A kubelet's writes about its pods, for tests that want a moment of their own choosing; kwok does the rest.
//! Left out: pods of clusters that have kubelets, which would contradict it (see `without_kubelets`).

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::scene::Scene;

impl Scene {
    /// Makes a running pod ready or not.
    pub(crate) async fn set_pod_ready(&self, pod: &str, ready: bool) -> Result<()> {
        self.patch_pod_status(pod, &json!({"conditions": ready_conditions(ready)})).await
    }

    /// Ends a pod's containers with `exit_code`; the pod then is Succeeded or Failed.
    pub(crate) async fn end_pod(&self, pod: &str, exit_code: i32) -> Result<()> {
        let now = now();
        let (phase, reason) = if exit_code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
        let spec = self.fetch::<Pod>(pod).await?.spec.context("a pod without a spec")?;
        let ended = |name: &str, image: Option<&str>| {
            json!({
                "name": name, "image": image, "imageID": image,
                "ready": false, "started": false, "restartCount": 0,
                "state": {"terminated":
                    {"exitCode": exit_code, "reason": reason, "startedAt": now, "finishedAt": now}},
            })
        };
        let containers = spec.containers.iter().map(|container| ended(&container.name, container.image.as_deref()));
        let containers: Vec<Value> = containers.collect();
        let conditions = ready_conditions(false);
        self.patch_pod_status(pod, &json!({"phase": phase, "containerStatuses": containers, "conditions": conditions}))
            .await
    }

    /// A strategic patch, which merges conditions and containers by their names.
    async fn patch_pod_status(&self, pod: &str, status: &Value) -> Result<()> {
        let patch = Patch::Strategic(json!({"status": status}));
        let patched = self.api::<Pod>().patch_status(pod, &PatchParams::default(), &patch).await;
        patched.map(drop).with_context(|| format!("set the status of pod {pod}"))
    }
}

fn ready_conditions(ready: bool) -> Value {
    let (now, status) = (now(), if ready { "True" } else { "False" });
    json!(["Ready", "ContainersReady"].map(|type_| json!({"type": type_, "status": status, "lastTransitionTime": now})))
}

/// A kubelet reads the clock, and so the real time stands in what it writes.
#[expect(clippy::disallowed_methods, reason = "in place of a kubelet, which reads the clock")]
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
