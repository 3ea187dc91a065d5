//! The ClusterTrustBundles of the signer of apiservers' certificates, on a cluster that serves them.
//!
//! Left out: the CA's own name for its bundle, which the operator's tests compare.

use anyhow::{Result, bail};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

use super::Scene;

/// The operator that keeps them.
pub(crate) const OPERATOR: &str = "kube-apiserver-serving-clustertrustbundle-publisher-operator";
const API_VERSION: &str = "certificates.k8s.io/v1beta1";
const KIND: &str = "ClusterTrustBundle";
const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
/// The name of a bundle of the signer that is not the CA's.
pub(crate) const STRANGER: &str = "kubernetes.io:kube-apiserver-serving:e2e-stranger";

/// All bundles, of this signer and of others.
pub(crate) async fn api(scene: &Scene) -> Result<Api<DynamicObject>> {
    e2e::apply::api(&scene.client, API_VERSION, KIND, "").await
}

/// A bundle of the signer with these certificates that is not the CA's, whatever is in it.
pub(crate) fn stranger(certificates: &str) -> Value {
    let spec = json!({"signerName": SIGNER, "trustBundle": certificates});
    json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": STRANGER}, "spec": spec})
}

/// The only bundle that the signer has.
pub(crate) async fn only(bundles: &Api<DynamicObject>) -> Result<DynamicObject> {
    let of_signer = ListParams::default().fields(&format!("spec.signerName={SIGNER}"));
    let mut found = bundles.list(&of_signer).await?.items;
    match (found.pop(), found.len()) {
        (Some(only), 0) => Ok(only),
        (last, more) => bail!("{more} bundles, and {last:?}"),
    }
}

/// The certificates of a bundle.
pub(crate) fn certificates(bundle: &DynamicObject) -> &str {
    bundle.data["spec"]["trustBundle"].as_str().unwrap_or_default()
}
