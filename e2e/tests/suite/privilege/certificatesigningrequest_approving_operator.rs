//! A request for a node's client certificate, made by somebody who may do everything.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::DeleteParams;

use crate::support::requests::{KUBELET_CLIENT, request};
use crate::support::{DEADLINE, Scene};

const NAME: &str = "e2e-kubelet";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    apply(&scene.client, "", &request(NAME, KUBELET_CLIENT, "system:node:e2e", "system:nodes")?).await?;
    let requests: Api<CertificateSigningRequest> = Api::all(scene.client.clone());
    scene
        .wait_until("the request is approved", DEADLINE, async || {
            let conditions = requests.get(NAME).await?.status.and_then(|status| status.conditions).unwrap_or_default();
            let approval = conditions.iter().find(|condition| condition.type_ == "Approved");
            let (reason, message) =
                ("AutoApproved", "Auto approving kubelet client certificate after SubjectAccessReview.");
            let is_upstreams = approval.is_some_and(|approval| {
                (approval.reason.as_deref(), approval.message.as_deref()) == (Some(reason), Some(message))
            });
            ensure!(is_upstreams, "{conditions:?}");
            Ok(())
        })
        .await?;
    requests.delete(NAME, &DeleteParams::default()).await.map(drop).context("delete the request")
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.apply(&request("e2e-new", KUBELET_CLIENT, "system:node:new", "system:nodes")?).await?;
    Ok("patch certificatesigningrequests.certificates.k8s.io/approval e2e-new: status.conditions".to_owned())
}
