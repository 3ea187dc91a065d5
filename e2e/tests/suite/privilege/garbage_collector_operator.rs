//! An owner that orphans, one that does not, and one in another namespace.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::core::DynamicObject;
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
    refer_elsewhere(scene).await
}

/// Twice, because an event that is told again is patched.
async fn refer_elsewhere(scene: &Scene) -> Result<()> {
    let config_map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let reference = |owner: &DynamicObject| {
        let (name, uid) = (owner.name_any(), owner.uid());
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
    };
    let here = scene.apply(&config_map("here")).await?;
    let there = scene.beside("there").await?.apply(&config_map("there")).await?;
    let mut dependent = config_map("dependent-of-both");
    dependent["metadata"]["ownerReferences"] = json!([reference(&here), reference(&there)]);
    for times in 1..=2 {
        scene.apply(&dependent).await?;
        scene
            .wait_until(&format!("the reference was taken away and told {times} times"), DEADLINE, async || {
                let left = scene.fetch::<ConfigMap>("dependent-of-both").await?;
                let told = scene.events("OwnerRefInvalidNamespace").await?;
                let told: i32 = told.iter().filter_map(|event| event.count).sum();
                ensure!(left.owner_references().len() == 1 && told == times, "{told} times: {left:?}");
                Ok(())
            })
            .await?;
    }
    Ok(())
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone",
        "uid": "7d0f0000-0000-4000-8000-000000000001"});
    let metadata = json!({"name": "left", "ownerReferences": [owner]});
    scene.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).await?;
    Ok(format!("delete configmaps {}/left: ", scene.namespace))
}
