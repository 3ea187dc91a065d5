//! A limit on pods, in force at once, whether or not a resourcequota-controller or its operator is at work.
//! Left out: giving back what deleted pods have used.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use serde_json::json;

use super::scene::Scene;

impl Scene {
    /// From now on this namespace may have so many pods.
    pub(crate) async fn limit_pods(&self, quota: &str, pods: usize) -> Result<()> {
        let hard = json!({"pods": pods.to_string()});
        let object =
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": quota}, "spec": {"hard": hard}});
        self.apply(&object).await?;
        let used = json!({"pods": self.list::<Pod>("").await?.len().to_string()});
        let status = json!({"status": {"hard": hard, "used": used}});
        self.patch_status::<ResourceQuota>(quota, &status).await.map(drop)
    }
}
