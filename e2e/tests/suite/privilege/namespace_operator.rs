//! A namespace that goes with all that is in it.

use anyhow::Result;

use crate::support::Scene;

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let doomed = scene.beside("doomed").await?;
    doomed.delete_namespace().await?;
    doomed.namespace_gone().await
}
