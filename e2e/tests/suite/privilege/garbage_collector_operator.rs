//! An owner that orphans, and one that does not.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

/// The dependents are of several kinds, because a role for every kind is not justified by one.
pub(super) async fn live(scene: &Scene) -> Result<()> {
    for policy in ["orphan", "background"] {
        let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        let owner = scene.apply(&object("ConfigMap", "owner")).await?;
        for kind in ["ConfigMap", "Secret"] {
            let mut dependent = object(kind, "dependent");
            dependent["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}]);
            scene.apply(&dependent).await?;
        }
        scene.kubectl(&format!("delete configmap/owner --cascade={policy}")).await?;
        scene
            .wait_until("its dependents are nobody's or gone", DEADLINE, async || {
                let config_map = scene.api::<ConfigMap>().get_opt("dependent").await?;
                let secret = scene.api::<Secret>().get_opt("dependent").await?;
                let metadata = [config_map.map(|found| found.metadata), secret.map(|found| found.metadata)];
                let owners: Vec<_> =
                    metadata.into_iter().flatten().filter_map(|metadata| metadata.owner_references).collect();
                ensure!(owners.is_empty(), "{owners:?}");
                Ok(())
            })
            .await?;
    }
    Ok(())
}
