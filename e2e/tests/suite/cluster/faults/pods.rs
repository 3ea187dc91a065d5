//! The collector of pods: what it believes of a node it asks before it deletes.

use anyhow::Result;
use http::Method;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::with_behind;
use crate::support::template;

#[test]
fn a_node_that_is_back_in_service_keeps_its_pods_whatever_the_cache_says() -> Result<()> {
    with_behind("pod-garbage-collector-operator", async |scene, behind| {
        let nodes: Api<Node> = Api::all(scene.client.clone());
        let taints = json!([{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]);
        for name in ["back", "lost"] {
            let node = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"taints": taints}}))?;
            nodes.create(&PostParams::default(), &node).await?;
        }
        for (name, node) in [("first", "lost"), ("kept", "back"), ("last", "lost")] {
            let mut spec = template(name)["spec"].clone();
            spec["nodeName"] = json!(node);
            spec["tolerations"] = json!([{"operator": "Exists"}]);
            scene.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})).await?;
        }
        scene.kubectl("delete pod/first --wait=false").await?;
        scene.gone::<Pod>("first").await?;
        // So it has seen both nodes as they were.
        behind.proxy.freeze_watches("/api/v1/nodes");
        let untainted = Patch::Merge(json!({"spec": {"taints": null}}));
        nodes.patch("back", &PatchParams::default(), &untainted).await?;
        scene.kubectl("delete pod/kept pod/last --wait=false").await?;
        scene.gone::<Pod>("last").await?;
        let asked = behind.proxy.requests().iter().any(|it| it.path == "/api/v1/nodes/back");
        assert!(asked, "it did not ask");
        let kept: Pod = scene.fetch("kept").await?;
        assert_eq!(kept.status.and_then(|status| status.phase).as_deref(), Some("Pending"));
        assert_eq!(behind.count(&Method::DELETE, "/api/v1/namespaces/*/pods/kept"), 0);
        Ok(())
    })
}
