//! No request at all, as most clusters serve none: the operator asks for them, and is well.
//!
//! Left out: a request that goes, for which a test would have to wait for a quarter of an hour.

use anyhow::{Result, ensure};

use crate::support::Scene;

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let served = scene.kubectl("api-resources --api-group=certificates.k8s.io --output=name").await?;
    ensure!(!served.contains("podcertificaterequests"), "this life is not for a cluster that serves {served}");
    Ok(())
}
