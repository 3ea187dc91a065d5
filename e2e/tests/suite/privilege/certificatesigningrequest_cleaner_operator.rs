//! A request that was denied long ago, as its condition says.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::DeleteParams;

use crate::support::Scene;
use crate::support::requests::deny_long_ago;

const NAME: &str = "e2e-denied";
/// Much longer than the operator takes. kube-controller-manager may take an hour, and nobody waits for that.
const SOON: Duration = Duration::from_secs(5);

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    deny_long_ago(scene, NAME).await?;
    let requests: Api<CertificateSigningRequest> = Api::all(scene.client.clone());
    let gone = scene.wait_until("the request is gone", SOON, async || {
        let left = requests.get_opt(NAME).await?;
        ensure!(left.is_none(), "{left:?}");
        Ok(())
    });
    if gone.await.is_err() {
        requests.delete(NAME, &DeleteParams::default()).await.map(drop).context("delete the request")?;
    }
    Ok(())
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    deny_long_ago(scene, "e2e-old").await?;
    Ok("delete certificatesigningrequests.certificates.k8s.io e2e-old: ".to_owned())
}
