//! A namespace that goes with all that is in it.

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DeleteParams;

use crate::support::Scene;

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let doomed = scene.beside("doomed").await?;
    doomed.delete_namespace().await?;
    doomed.namespace_gone().await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    namespaces.delete("shadow-1", &DeleteParams::background()).await?;
    Ok("deletecollection ".to_owned())
}
