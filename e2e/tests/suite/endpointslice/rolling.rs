//! A rolling update of many pods: nothing is missing at the end, nothing is left, and it takes no more writes than
//! upstream needs.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use e2e::audit_log;
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::{complete, endpoints, members, service};
use crate::support::{Scene, deployment, start_operators, with_cluster};

const OPERATOR: &str = "endpointslice-operator";
const PODS: usize = 300;

/// One event for each request that changed a slice.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete]
  resources: [{group: discovery.k8s.io, resources: [endpointslices]}]
- level: None
";

/// How many of the requests from the byte `position` of the log on wrote a slice in this namespace.
fn writes(scene: &Scene, position: u64) -> Result<usize> {
    let mut count = 0;
    for line in audit_log::lines_since(scene.cluster.audit_log()?, position)? {
        let request: Value = serde_json::from_slice(&line)?;
        count += usize::from(request["objectRef"]["namespace"] == *scene.namespace);
    }
    Ok(count)
}

/// Rolls a Deployment of many pods; gives how many writes of slices that took.
async fn roll(scene: &Scene) -> Result<usize> {
    scene.apply(&service("web")).await?;
    scene.apply(&deployment("web", i32::try_from(PODS)?)).await?;
    scene.rolled_out("web").await?;
    let first = complete(scene, "web", PODS).await?;
    ensure!(first.len() <= 4, "{} slices", first.len());
    let before: BTreeSet<String> = endpoints(&first)?.into_keys().collect();
    let position = audit_log::end(scene.cluster.audit_log()?)?;

    let step = json!({"spec": {"template": {"metadata": {"annotations": {"step": "2"}}}}});
    scene.patch::<Deployment>("web", &step).await?;
    scene.rolled_out("web").await?;
    let last = complete(scene, "web", PODS).await?;
    let after: BTreeSet<String> = endpoints(&last)?.into_keys().collect();
    ensure!(before.is_disjoint(&after), "old pods are listed: {:?}", before.intersection(&after));
    ensure!(last.iter().all(|slice| members(slice).len() <= 100), "a slice is too full");
    let count = writes(scene, position)?;
    let lengths: Vec<usize> = last.iter().map(|slice| members(slice).len()).collect();
    eprintln!("{}: {count} writes, slices of {lengths:?}", scene.namespace);
    Ok(count)
}

#[test]
fn a_rolling_update_of_many_pods_takes_no_more_writes_than_upstream_needs() -> Result<()> {
    let options =
        ClusterOptions { audit: true, audit_policy: AUDIT_POLICY, ..ClusterOptions::with_controller_manager() };
    with_cluster(options, async |scene| {
        let upstream = scene.beside("upstream").await?;
        let expected = roll(&upstream).await?;
        upstream.kubectl("delete deployment/web service/web").await?;
        scene.cluster.stop_controller_manager().await?;
        let rest = ControllerManager::without([upstream_controller(OPERATOR)]);
        scene.cluster.start_controller_manager(rest).await?;
        let _operators = start_operators(&scene.cluster, [OPERATOR]).await?;
        let ours = scene.beside("ours").await?;
        let found = roll(&ours).await?;
        assert!(found > 0 && found <= expected * 3 / 2, "{found} writes, where upstream needs {expected}");
        Ok(())
    })
}
