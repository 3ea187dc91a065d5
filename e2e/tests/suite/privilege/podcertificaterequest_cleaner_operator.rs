//! No request at all: the operator asks for them, and is well whether the apiserver serves them, as from 1.37 on, or not.
//!
//! Left out: a request that goes, for which a test would have to wait for a quarter of an hour.

use anyhow::{Result, ensure};

use crate::support::Scene;

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let served = scene.kubectl("api-resources --api-group=certificates.k8s.io --output=name").await?;
    if served.contains("podcertificaterequests") {
        let found = scene.kubectl("get podcertificaterequests --all-namespaces --output=name").await?;
        ensure!(found.is_empty(), "this life is not for a cluster that has {found}");
    }
    Ok(())
}
