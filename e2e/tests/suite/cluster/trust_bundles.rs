//! The ClusterTrustBundle with the CA of the apiserver's certificate, as kube-controller-manager publishes it and as
//! the operator does.
//!
//! Left out: another CA, and a cluster that serves no bundles, which the operator's own tests show.

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject};

use crate::support::trust_bundles::{OPERATOR, api, certificates, only};
use crate::support::{DEADLINE, start_operators, with_cluster};

/// All of a bundle but what differs between any two objects, and who has written it.
fn without_history(mut bundle: DynamicObject) -> Result<serde_json::Value> {
    let metadata = &mut bundle.metadata;
    (metadata.uid, metadata.resource_version) = (None, None);
    (metadata.creation_timestamp, metadata.managed_fields) = (None, None);
    serde_json::to_value(bundle).context("write a bundle as JSON")
}

#[test]
fn the_bundle_with_the_ca_is_upstreams() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager().with_gated_kinds(), async |scene| {
        let bundles = api(scene).await?;
        let published = async || scene.wait_until("it is published", DEADLINE, async || only(&bundles).await).await;
        let upstreams = published().await?;
        ensure!(certificates(&upstreams) == scene.cluster.pki()?.ca_pem(), "it is not the CA: {upstreams:?}");
        scene.cluster.stop_controller_manager().await?;
        let name = upstreams.name_any();
        bundles.delete(&name, &DeleteParams::default()).await.map(drop).context("delete upstream's bundle")?;
        let _operator = start_operators(&scene.cluster, [OPERATOR]).await?;
        let ours = published().await?;
        ensure!(ours.uid() != upstreams.uid(), "it is still upstream's");
        assert_eq!(without_history(ours)?, without_history(upstreams)?);
        Ok(())
    })
}
