//! The cluster's information gets a signature, another one when its text changes, and loses it with the token.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::support::{DEADLINE, Scene};

const CLUSTER_INFO: &str = "cluster-info";
const TOKEN: &str = "bootstrap-token-e2esig";
const SIGNATURE: &str = "jws-kubeconfig-e2esig";
/// Of `{"alg":"HS256","kid":"e2esig"}`, and no text.
const HEAD: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImUyZXNpZyJ9..";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let config_maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "kube-public");
    let secrets: Api<Secret> = Api::namespaced(scene.client.clone(), "kube-system");
    let metadata = json!({"name": TOKEN, "namespace": "kube-system"});
    let values = json!({"token-id": "e2esig", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"});
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
        "type": "bootstrap.kubernetes.io/token", "stringData": values});
    scene.apply(&token).await?;
    let metadata = json!({"name": CLUSTER_INFO, "namespace": "kube-public"});
    let cluster_info = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
        "data": {"kubeconfig": "clusters: []"}});
    scene.apply(&cluster_info).await?;

    let first = signature(scene, &config_maps, |found| found.is_some_and(|found| found.starts_with(HEAD))).await?;
    let edit = Patch::Merge(json!({"data": {"kubeconfig": "users: []"}}));
    config_maps.patch(CLUSTER_INFO, &PatchParams::default(), &edit).await.context("edit the text")?;
    let is_another = |found: &str| found.starts_with(HEAD) && found != first;
    signature(scene, &config_maps, |found| found.is_some_and(is_another)).await?;
    secrets.delete(TOKEN, &DeleteParams::default()).await.context("delete the token")?;
    signature(scene, &config_maps, |found| found.is_none()).await?;
    config_maps.delete(CLUSTER_INFO, &DeleteParams::default()).await.map(drop).context("delete the ConfigMap")
}

/// The signature, once it is as it should be.
async fn signature(
    scene: &Scene,
    config_maps: &Api<ConfigMap>,
    is_it: impl Fn(Option<&str>) -> bool,
) -> Result<String> {
    scene
        .wait_until("the signature is as it should be", DEADLINE, async || {
            let data = config_maps.get(CLUSTER_INFO).await?.data.unwrap_or_default();
            let found = data.get(SIGNATURE).map(String::as_str);
            ensure!(is_it(found), "{found:?}");
            Ok(found.unwrap_or_default().to_owned())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let data = json!({"token-id": "newnew", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"});
    let metadata = json!({"name": "bootstrap-token-newnew", "namespace": "kube-system"});
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
        "type": "bootstrap.kubernetes.io/token", "stringData": data});
    scene.apply(&token).await?;
    let metadata = json!({"name": CLUSTER_INFO, "namespace": "kube-public"});
    let unsigned =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"kubeconfig": "clusters: []"}});
    scene.apply(&unsigned).await?;
    Ok("patch configmaps kube-public/cluster-info: data.jws-kubeconfig-newnew: ".to_owned())
}
