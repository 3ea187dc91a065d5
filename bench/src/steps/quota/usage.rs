//! Quotas in many namespaces, and pods that come and go there.
//! Left out: who makes these pods. The bench itself does, so that a quota is all that anybody keeps.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use shared::api::quantity::{Format, Quantity};

use crate::measure::{Bench, NAMESPACE, PROBE, create, in_parallel};
use crate::sizes::QuotaSizes;
use crate::steps::workloads::deployment;

pub(super) const STEPS: [&str; 3] = ["put quotas in force", "pods come", "pods go"];
const TEAM: &str = "team";

fn namespace(at: u32) -> String {
    format!("bench-team-{at:03}")
}

/// A limit of nothing that the steps have, until its usage is there.
pub(super) async fn begin(bench: &Bench<'_>) -> Result<()> {
    create_quota(bench, NAMESPACE, PROBE, &json!({"replicationcontrollers": "10"})).await?;
    wait_used(bench, 1, |quota| uses(quota, "replicationcontrollers", 0)).await
}

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let &QuotaSizes { quotas, charged_pods, .. } = &bench.options.quota;
    let [limit_step, come_step, go_step] = STEPS;
    let each = charged_pods / quotas;
    in_parallel(quotas, async |at| bench.create_namespace(&namespace(at)).await).await?;
    let limit = async |bench: &mut Bench<'_>| {
        let hard = json!({"pods": "50", "requests.cpu": "10", "requests.memory": "10Gi", "limits.cpu": "20"});
        in_parallel(quotas, async |at| create_quota(bench, &namespace(at), TEAM, &hard).await).await?;
        wait_used(bench, quotas, |quota| uses(quota, "pods", 0)).await
    };
    bench.measure(limit_step, limit).await?;

    let pods: Api<Pod> = Api::all(bench.client.clone());
    let come = async |bench: &mut Bench<'_>| {
        in_parallel(quotas, async |at| create_pods(bench, &namespace(at), each).await).await?;
        let waiting = ListParams::default().fields("status.phase!=Running").limit(1);
        bench.wait_until("running", async || Ok(pods.list_metadata(&waiting).await?.items.is_empty())).await?;
        wait_used(bench, quotas, |quota| uses(quota, "pods", each)).await
    };
    bench.measure(come_step, come).await?;
    let go = async |bench: &mut Bench<'_>| {
        in_parallel(quotas, async |at| delete_pods(bench, &namespace(at), each).await).await?;
        wait_used(bench, quotas, |quota| uses(quota, "pods", 0) && uses(quota, "limits.cpu", 0)).await
    };
    bench.measure(go_step, go).await
}

pub(super) async fn create_quota(bench: &Bench<'_>, namespace: &str, name: &str, hard: &Value) -> Result<()> {
    let quota = json!({"metadata": {"name": name}, "spec": {"hard": hard}});
    create::<ResourceQuota>(&Api::namespaced(bench.client.clone(), namespace), quota).await.map(drop)
}

async fn create_pods(bench: &Bench<'_>, namespace: &str, count: u32) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(bench.client.clone(), namespace);
    for at in 0..count {
        let mut pod = deployment("charged", 1)["spec"]["template"].clone();
        pod["metadata"]["name"] = json!(format!("charged-{at}"));
        pod["spec"]["containers"][0]["resources"]["limits"] = json!({"cpu": "100m"});
        create(&pods, pod).await?;
    }
    Ok(())
}

async fn delete_pods(bench: &Bench<'_>, namespace: &str, count: u32) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(bench.client.clone(), namespace);
    for at in 0..count {
        pods.delete(&format!("charged-{at}"), &DeleteParams::default().grace_period(0)).await?;
    }
    Ok(())
}

/// All quotas of this many namespaces are as `is_right` says.
async fn wait_used(bench: &Bench<'_>, count: u32, is_right: impl Fn(&ResourceQuota) -> bool) -> Result<()> {
    let all: Api<ResourceQuota> = Api::all(bench.client.clone());
    let name = if count == 1 { PROBE } else { TEAM };
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    bench
        .wait_until("counted", async || {
            let quotas = all.list(&named).await?.items;
            Ok(quotas.len() == usize::try_from(count)? && quotas.iter().all(&is_right))
        })
        .await
}

/// Whether the usage under this name is this, and the limit in force.
pub(super) fn uses(quota: &ResourceQuota, name: &str, amount: u32) -> bool {
    let used = quota.status.as_ref().and_then(|status| status.used.as_ref()?.get(name));
    let used = used.and_then(|used| used.0.parse::<Quantity>().ok());
    used.is_some_and(|used| used == Quantity::new(amount.into(), 0, Format::DecimalSi))
}
