//! Both families of addresses, which only an apiserver has that was told of both.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use serde_json::json;

use super::{members, pod, service, slices};
use crate::support::{DEADLINE, Scene, start_operators, with_cluster};

const OPERATOR: &str = "endpointslice-operator";

/// A pod with an address of each family. kwok gives it the first; the kubelet of a node of both families, the second too.
async fn dual_stack_pod(scene: &Scene, name: &str, v6: &str) -> Result<String> {
    scene.apply(&pod(name, "web")).await?;
    let v4 = scene
        .wait_until("the pod has an address", DEADLINE, async || {
            let pod: Pod = scene.fetch(name).await?;
            pod.status.and_then(|status| status.pod_ip).context("none yet")
        })
        .await?;
    scene.patch_status::<Pod>(name, &json!({"status": {"podIPs": [{"ip": v4}, {"ip": v6}]}})).await?;
    Ok(v4)
}

/// The addresses of each family, once there is one slice for each of these.
async fn addresses(scene: &Scene, families: &[(&str, Vec<String>)]) -> Result<Vec<EndpointSlice>> {
    scene
        .wait_until(&format!("slices of {families:?}"), DEADLINE, async || {
            let slices = slices(scene, "web").await?;
            ensure!(slices.len() == families.len(), "{} slices", slices.len());
            let found: BTreeMap<&str, Vec<String>> = slices
                .iter()
                .map(|slice| {
                    let mut all: Vec<String> =
                        members(slice).iter().flat_map(|endpoint| endpoint.addresses.clone()).collect();
                    all.sort();
                    (slice.address_type.as_str(), all)
                })
                .collect();
            ensure!(found == families.iter().cloned().collect(), "{found:?}");
            Ok(slices)
        })
        .await
}

#[test]
fn a_service_of_both_families_has_slices_of_both() -> Result<()> {
    let flags = vec!["--service-cluster-ip-range=10.0.0.0/16,fd00:10:96::/108".to_owned()];
    let options = ClusterOptions { apiserver_flags: flags, ..ClusterOptions::default() };
    with_cluster(options, async |scene| {
        let _operators = start_operators(&scene.cluster, [OPERATOR]).await?;
        let mut web = service("web");
        web["spec"]["ipFamilyPolicy"] = "SingleStack".into();
        scene.apply(&web).await?;
        let first = dual_stack_pod(scene, "a", "fd00::a").await?;
        let second = dual_stack_pod(scene, "b", "FD00:0::B").await?;
        let mut v4 = vec![first, second];
        v4.sort();
        let v6 = vec!["fd00::a".to_owned(), "fd00::b".to_owned()];
        let single = addresses(scene, &[("IPv4", v4.clone())]).await?;

        scene.patch::<Service>("web", &json!({"spec": {"ipFamilyPolicy": "RequireDualStack"}})).await?;
        let dual = addresses(scene, &[("IPv4", v4.clone()), ("IPv6", v6)]).await?;
        assert!(dual.iter().any(|slice| slice.uid() == single[0].uid()), "that of IPv4 is the same");

        let ip = scene.fetch::<Service>("web").await?.spec.and_then(|spec| spec.cluster_ip);
        let back = json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"], "clusterIPs": [ip]});
        scene.patch::<Service>("web", &json!({"spec": back})).await?;
        addresses(scene, &[("IPv4", v4)]).await.map(drop)
    })
}
