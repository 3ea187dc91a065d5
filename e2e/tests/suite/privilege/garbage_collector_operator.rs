//! An owner that orphans, and one that does not.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    for policy in ["orphan", "background"] {
        let config_map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let owner = scene.apply(&config_map("owner")).await?;
        let mut dependent = config_map("dependent");
        dependent["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}]);
        scene.apply(&dependent).await?;
        scene.kubectl(&format!("delete configmap/owner --cascade={policy}")).await?;
        scene
            .wait_until("its dependent is nobody's or gone", DEADLINE, async || {
                let dependent = scene.api::<ConfigMap>().get_opt("dependent").await?;
                let owners = dependent.and_then(|dependent| dependent.metadata.owner_references);
                ensure!(owners.is_none(), "{owners:?}");
                Ok(())
            })
            .await?;
    }
    Ok(())
}
