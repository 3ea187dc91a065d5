//! ServiceCIDRs that overlap: which of them may go while addresses are in use, and which stay.
//! Left out: how addresses are allocated, which is the apiserver's.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use futures::try_join;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::support::{DEADLINE, Scene, on_shared_cluster};

const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

fn ranges(scene: &Scene) -> Api<ServiceCIDR> {
    Api::all(scene.client.clone())
}

/// Makes a range, and waits until addresses are allocated from it.
async fn make(scene: &Scene, name: &str, cidr: &str) -> Result<()> {
    let range = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name},
        "spec": {"cidrs": [cidr]}});
    apply(&scene.client, "", &range).await?;
    stands(scene, name, ("True", "")).await
}

/// Waits until a range has this condition; until then it is protected.
async fn stands(scene: &Scene, name: &str, expected: (&str, &str)) -> Result<()> {
    scene
        .wait_until(&format!("{name} is Ready={expected:?}"), DEADLINE, async || {
            let range = ranges(scene).get(name).await?;
            ensure!(range.metadata.finalizers == Some(vec![FINALIZER.to_owned()]), "{:?}", range.metadata);
            let conditions = range.status.and_then(|status| status.conditions).unwrap_or_default();
            let found = conditions.iter().find(|condition| condition.type_ == "Ready");
            let found = found.map(|ready| (ready.status.as_str(), ready.reason.as_str()));
            ensure!(found == Some(expected), "{found:?}");
            Ok(())
        })
        .await
}

async fn use_address(scene: &Scene, name: &str, address: &str) -> Result<()> {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"clusterIP": address, "ports": [{"port": 80}]}});
    // The apiserver has to see the range first.
    scene.wait_until("a Service has its address", DEADLINE, async || scene.apply(&service).await.map(drop)).await
}

async fn delete(scene: &Scene, name: &str) -> Result<()> {
    ranges(scene).delete(name, &DeleteParams::default()).await.map(drop).with_context(|| format!("delete {name}"))
}

async fn gone(scene: &Scene, name: &str) -> Result<()> {
    scene.gone_from(&ranges(scene), name).await
}

/// A range within another one goes at once though its address is in use; the outer one stays for that address.
async fn nested(scene: &Scene) -> Result<()> {
    make(scene, "e2e-outer", "10.241.0.0/16").await?;
    make(scene, "e2e-inner", "10.241.4.0/24").await?;
    use_address(scene, "nested", "10.241.4.7").await?;
    delete(scene, "e2e-inner").await?;
    gone(scene, "e2e-inner").await?;
    delete(scene, "e2e-outer").await?;
    stands(scene, "e2e-outer", ("False", "Terminating")).await?;
    scene.api::<Service>().delete("nested", &DeleteParams::default()).await?;
    gone(scene, "e2e-outer").await
}

/// A range that stays for its address goes once another one that overlaps it has that address too.
async fn overlapping(scene: &Scene) -> Result<()> {
    make(scene, "e2e-old", "10.242.4.0/24").await?;
    use_address(scene, "kept", "10.242.4.7").await?;
    delete(scene, "e2e-old").await?;
    stands(scene, "e2e-old", ("False", "Terminating")).await?;
    make(scene, "e2e-new", "10.242.0.0/20").await?;
    gone(scene, "e2e-old").await?;
    let kept: Service = scene.fetch("kept").await?;
    ensure!(kept.spec.and_then(|spec| spec.cluster_ip).as_deref() == Some("10.242.4.7"), "it has lost its address");
    scene.api::<Service>().delete("kept", &DeleteParams::default()).await?;
    delete(scene, "e2e-new").await
}

#[test]
fn a_range_stays_for_the_addresses_that_no_other_one_has() -> Result<()> {
    on_shared_cluster(async |scene| try_join!(nested(scene), overlapping(scene)).map(drop))
}
