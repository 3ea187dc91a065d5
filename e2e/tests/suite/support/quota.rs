//! A limit on pods, in force at once, whether or not a resourcequota-controller or its operator is at work.
//! Left out: giving back what deleted pods have used.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use serde_json::json;

use super::scene::{DEADLINE, Scene};

impl Scene {
    /// From now on this namespace may have so many pods.
    pub(crate) async fn limit_pods(&self, quota: &str, pods: usize) -> Result<()> {
        let hard = json!({"pods": pods.to_string()});
        let object =
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": quota}, "spec": {"hard": hard}});
        self.apply(&object).await?;
        self.wait_until("the quota is in force", DEADLINE, async || {
            let found: ResourceQuota = self.fetch(quota).await?;
            let status = found.status.unwrap_or_default();
            let is_counted = status.used.is_some_and(|used| used.contains_key("pods"));
            if is_counted && json!(status.hard) == hard {
                return Ok(());
            }
            // Refused if a controller has counted meanwhile: it looks at the usage again only when a pod goes, and
            // this list may have one that has gone before.
            let used = json!({"pods": self.list::<Pod>("").await?.len().to_string()});
            let version = json!({ "resourceVersion": found.metadata.resource_version });
            let status = json!({"metadata": version, "status": {"hard": hard, "used": used}});
            self.patch_status::<ResourceQuota>(quota, &status).await.map(drop)
        })
        .await
    }
}
