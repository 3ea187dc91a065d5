//! All that the operators of the cluster itself do: what begins and ends with a namespace, with an owner, with a node.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::support::{DEADLINE, Scene, template};

/// A namespace that goes with all that is in it, a CA that was changed, an owner that orphans and one that does not, and
/// a pod that is stuck on a node out of service.
pub(super) async fn live(scene: &Scene) -> Result<()> {
    change_ca(scene).await?;
    delete_owners(scene).await?;
    collect_pod(scene).await?;
    let doomed = scene.beside("doomed").await?;
    doomed.delete_namespace().await?;
    doomed.namespace_gone().await
}

async fn change_ca(scene: &Scene) -> Result<()> {
    let changed: ConfigMap = scene.patch("kube-root-ca.crt", &json!({"data": {"more": "x"}})).await?;
    scene
        .wait_until("it is set right", DEADLINE, async || {
            let now: ConfigMap = scene.fetch("kube-root-ca.crt").await?;
            ensure!(now.metadata.resource_version != changed.metadata.resource_version, "it is as it was");
            Ok(())
        })
        .await
}

/// The dependents are of several kinds, because a role for every kind is not justified by one.
async fn delete_owners(scene: &Scene) -> Result<()> {
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

async fn collect_pod(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let taints = json!([{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]);
    let node = serde_json::from_value(json!({"metadata": {"name": "lost"}, "spec": {"taints": taints}}))?;
    nodes.create(&PostParams::default(), &node).await?;
    let mut spec = template("stuck")["spec"].clone();
    spec["nodeName"] = json!("lost");
    // The taint would not let it stay.
    spec["tolerations"] = json!([{"operator": "Exists"}]);
    scene.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stuck"}, "spec": spec})).await?;
    scene.kubectl("delete pod/stuck --wait=false").await?;
    scene.gone::<Pod>("stuck").await
}
