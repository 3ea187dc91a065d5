//! Two tokens that nobody uses, one of them invalid for long.
//!
//! Left out: waiting for their end. kube-controller-manager looks at tokens once a day, and these are new to it.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::support::{DEADLINE, Scene};

const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let secrets = json!([{"name": "unused"}, {"name": "overdue"}]);
    let metadata = json!({"name": "robot"});
    scene
        .apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "secrets": secrets}))
        .await?;
    let overdue = json!({"kubernetes.io/legacy-token-invalid-since": "2020-01-01"});
    for (name, labels) in [("unused", json!({})), ("overdue", overdue)] {
        let annotations = json!({"kubernetes.io/service-account.name": "robot"});
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
        let kind = "kubernetes.io/service-account-token";
        scene.apply(&json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata})).await?;
    }
    // A round begins when this day changes. The apiserver makes the ConfigMap soon after its start.
    let config_maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "kube-system");
    let long_ago = Patch::Merge(json!({"data": {"since": "2020-01-01"}}));
    scene
        .wait_until("uses are noted since long ago", DEADLINE, async || {
            let patched = config_maps.patch(TRACKING, &PatchParams::default(), &long_ago).await;
            patched.map(drop).context("change the day since when uses are noted")
        })
        .await
}
