//! The operators of clouds when the cloud, the apiserver or they themselves fail: killed at each write and each call,
//! answers lost, two processes at work, a provider that dies in the middle or answers yesterday's state.
//!
//! The cloud is the scriptable one. Whatever happens, in the end there is one balancer for a Service and one route for a
//! node, nothing is left behind, and no node is deleted that the cloud has.
//! Left out: what a provider does, which its own tests show.

mod balancers;
mod nodes;
mod pools;
mod routes;

use anyhow::{Context, Result, ensure};
use e2e::cloud::{Action, Call, CloudState, Fault, ScriptedCloud};
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::behind::Behind;
use crate::support::{DEADLINE, Scene, with_cluster};

/// Longer than any test: the caller is gone before.
const FOREVER: u64 = 600_000;

/// A caller that is killed at this call: before the cloud does its work, or after it and before the answer.
fn hold(call: Call, has_worked: bool) -> Fault {
    let milliseconds = FOREVER;
    Fault::new(call, if has_worked { Action::DelayAnswer { milliseconds } } else { Action::Delay { milliseconds } })
}

/// Runs a test on a small cluster where nothing but one operator, behind a proxy, and the cloud are at work.
fn with_operator(
    name: &str,
    flags: &[&str],
    test: impl AsyncFnOnce(&Scene, &ScriptedCloud, Behind) -> Result<()>,
) -> Result<()> {
    with_cluster(ClusterOptions { nodes: 2, ..ClusterOptions::default() }, async |scene| {
        let cloud = scene.cluster.cloud().await?;
        let operator = start(scene, name, name, flags).await?;
        test(scene, cloud, operator).await
    })
}

/// Starts an operator that elects no leader: each process is at work at once, and a restart waits for no Lease.
async fn start(scene: &Scene, name: &str, replica: &str, flags: &[&str]) -> Result<Behind> {
    // The last flag counts.
    let flags = [flags, &["--leader-elect=false"]].concat();
    Behind::start(scene, name, replica, &flags).await
}

fn nodes(scene: &Scene) -> Api<Node> {
    Api::all(scene.client.clone())
}

/// Waits until every fault has struck as often as it should.
async fn struck(scene: &Scene, cloud: &ScriptedCloud) -> Result<()> {
    scene
        .wait_until("the faults have struck", DEADLINE, async || {
            let faults = cloud.read()?.faults;
            ensure!(faults.iter().all(Fault::is_over), "{faults:?}");
            Ok(())
        })
        .await
}

/// How many calls have done this to an object, such as `made`.
fn count(cloud: &ScriptedCloud, call: Call, object: &str, outcome: &str) -> Result<usize> {
    Ok(cloud.calls_about(call, object)?.iter().filter(|noted| noted.outcome == outcome).count())
}

/// A Service of type LoadBalancer with one port.
pub(crate) fn balanced(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": port}]},
    })
}

/// The addresses in a Service's status.
pub(crate) fn addresses(service: &Service) -> Vec<String> {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = status.and_then(|status| status.ingress.as_ref()).into_iter().flatten();
    ingress.filter_map(|ingress| ingress.ip.clone()).collect()
}

/// Waits until the only balancer of a Service is as the Service says, and the Service shows its address.
async fn balanced_by_one(scene: &Scene, cloud: &ScriptedCloud, name: &str, port: u16) -> Result<String> {
    scene
        .wait_until(&format!("{name} is balanced"), DEADLINE, async || {
            let service: Service = scene.fetch(name).await?;
            let CloudState { balancers, .. } = cloud.state()?;
            let uid = service.uid().context("a Service without a uid")?;
            let own: Vec<_> = balancers.values().filter(|balancer| balancer.uid == uid).collect();
            let [balancer] = *own else { anyhow::bail!("{own:?}") };
            ensure!(balancer.ports == [json!(port)] && balancer.nodes.len() == 2, "{balancer:?}");
            ensure!(addresses(&service) == [balancer.address.clone()], "{:?} is not {balancer:?}", service.status);
            Ok(balancer.address.clone())
        })
        .await
}

/// Waits until a deleted Service is gone, and the cloud has no balancer.
async fn gone_with_balancer(scene: &Scene, cloud: &ScriptedCloud, name: &str) -> Result<()> {
    scene.gone::<Service>(name).await?;
    scene
        .wait_until("no balancer is left behind", DEADLINE, async || {
            let CloudState { balancers, .. } = cloud.state()?;
            ensure!(balancers.is_empty(), "{balancers:?}");
            Ok(())
        })
        .await
}
