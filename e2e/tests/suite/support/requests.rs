//! CertificateSigningRequests, as somebody with all rights makes them and decides on them.
//!
//! Left out: signing, which is left to the controllers that a test is about.

use anyhow::{Context, Result};
use e2e::apply::apply;
use e2e::pki::certificate_request;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::Scene;

/// The signer of kubelets' client certificates.
pub(crate) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of other clients' certificates.
pub(crate) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// A signer that is nobody.
const NOBODY: &str = "e2e.example/nobody";
/// Long before any test.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// A request for a client certificate of this user and group.
pub(crate) fn request(name: &str, signer: &str, user: &str, group: &str) -> Result<Value> {
    let request = ByteString(certificate_request(user, group)?.into_bytes());
    let usages = ["digital signature", "client auth"];
    Ok(json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": request, "signerName": signer, "usages": usages},
    }))
}

/// A request that somebody denied years ago, as the condition says.
pub(crate) async fn deny_long_ago(scene: &Scene, name: &str) -> Result<()> {
    apply(&scene.client, "", &request(name, NOBODY, "somebody", "somewhere")?).await?;
    let requests: Api<CertificateSigningRequest> = Api::all(scene.client.clone());
    let condition = json!({"type": "Denied", "status": "True", "reason": "E2E", "lastUpdateTime": LONG_AGO});
    let denied = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    requests.patch_approval(name, &PatchParams::default(), &denied).await.map(drop).context("deny the request")
}

/// Somebody's approval of a request.
pub(crate) async fn approve(scene: &Scene, name: &str) -> Result<()> {
    let requests: Api<CertificateSigningRequest> = Api::all(scene.client.clone());
    let approval = json!({"type": "Approved", "status": "True", "reason": "E2E"});
    let approved = Patch::Merge(json!({"status": {"conditions": [approval]}}));
    requests.patch_approval(name, &PatchParams::default(), &approved).await.map(drop).context("approve the request")
}
