//! An approved request that gets its certificate, and one that asks its signer for too much.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestStatus};
use kube::Api;
use kube::api::DeleteParams;

use crate::support::requests::{CLIENT, approve, request};
use crate::support::{DEADLINE, Scene};

const SIGNED: &str = "e2e-signed";
const FAILED: &str = "e2e-unsigned";
const SERVING: &str = "kubernetes.io/kubelet-serving";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let requests: Api<CertificateSigningRequest> = Api::all(scene.client.clone());
    for (name, signer) in [(SIGNED, CLIENT), (FAILED, SERVING)] {
        apply(&scene.client, "", &request(name, signer, "e2e", "e2e")?).await?;
        approve(scene, name).await?;
    }
    scene
        .wait_until("the one has its certificate", DEADLINE, async || {
            let certificate = status(&requests, SIGNED).await?.certificate.unwrap_or_default();
            let is_pem = certificate.0.starts_with(b"-----BEGIN CERTIFICATE-----\n");
            ensure!(is_pem, "{}", String::from_utf8_lossy(&certificate.0));
            Ok(())
        })
        .await?;
    scene
        .wait_until("the other has failed", DEADLINE, async || {
            let conditions = status(&requests, FAILED).await?.conditions.unwrap_or_default();
            let failure = conditions.iter().find(|condition| condition.type_ == "Failed");
            let (reason, message) = ("SignerValidationFailure", "subject organization is not system:nodes");
            let is_upstreams = failure.is_some_and(|failure| {
                (failure.reason.as_deref(), failure.message.as_deref()) == (Some(reason), Some(message))
            });
            ensure!(is_upstreams, "{conditions:?}");
            Ok(())
        })
        .await?;
    for name in [SIGNED, FAILED] {
        requests.delete(name, &DeleteParams::default()).await.map(drop).context("delete the request")?;
    }
    Ok(())
}

async fn status(requests: &Api<CertificateSigningRequest>, name: &str) -> Result<CertificateSigningRequestStatus> {
    Ok(requests.get(name).await.context("get the request")?.status.unwrap_or_default())
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.apply(&request("e2e-approved", CLIENT, "somebody", "somewhere")?).await?;
    approve(scene, "e2e-approved").await?;
    Ok("patch certificatesigningrequests.certificates.k8s.io/status e2e-approved: status.certificate: ".to_owned())
}
