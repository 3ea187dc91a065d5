//! The CA's bundle, which is set right after somebody has spoilt it, and another one of its signer, which goes.
//!
//! Left out: a cluster that serves no bundles, for which the operator's own tests have all that there is to see.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::support::trust_bundles::{STRANGER, api, certificates, only, stranger};
use crate::support::{DEADLINE, Scene};

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let bundles = api(scene).await?;
    let published = scene.wait_until("the CA is published", DEADLINE, async || only(&bundles).await).await?;
    let (name, ca) = (published.name_any(), certificates(&published));
    // The apiserver looks at certificates only, and takes any text before them.
    let spoilt = Patch::Merge(json!({"spec": {"trustBundle": format!("spoilt\n{ca}")}}));
    bundles.patch(&name, &PatchParams::default(), &spoilt).await.context("spoil the bundle")?;
    scene.apply(&stranger(ca)).await?;
    scene
        .wait_until("the bundle is set right, and the other one has gone", DEADLINE, async || {
            let now = only(&bundles).await?;
            ensure!(now.name_any() == name && certificates(&now) == ca, "{now:?}");
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.apply(&stranger(scene.cluster.pki()?.ca_pem())).await?;
    Ok(format!("delete clustertrustbundles.certificates.k8s.io {STRANGER}: "))
}
