//! Autoscalers in many namespaces, each with a target and a pod of its own, whose load changes.
//! Left out: a load by which they would scale. That would be the work of whoever makes pods, and is the same for all.

use std::collections::BTreeSet;
use std::pin::pin;

use anyhow::{Context, Result, bail};
use e2e::metrics::{Metrics, Pods, withdraw};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::measure::{Bench, DEADLINE, NAMESPACE, count, create, in_parallel, small};
use crate::steps::workloads::deployment;

pub(super) const STEP: &str = "autoscalers tell another load";
/// How many autoscalers share a namespace: each lists the pods of its own.
const PER_NAMESPACE: u32 = 20;
/// What a pod requests, in thousandths of a CPU: so many that one of them is a percent.
const REQUESTED: &str = "100m";
/// What it takes, in percent of that: first the target, and then another load that is within the tolerance of it.
const LOADS: [i32; 2] = [50, 52];

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let autoscalers = bench.options.quota.autoscalers;
    let namespaces = autoscalers.div_ceil(PER_NAMESPACE);
    in_parallel(namespaces, async |at| bench.create_namespace(&namespace(at)).await).await?;
    in_parallel(autoscalers, async |at| create_target(bench, at).await).await?;
    let pods: Api<Pod> = Api::all(bench.client.clone());
    let waiting = ListParams::default().fields("status.phase!=Running").limit(1);
    bench
        .wait_until("running", async || {
            let all = count(&pods).await? == i64::from(autoscalers);
            Ok(all && pods.list_metadata(&waiting).await?.items.is_empty())
        })
        .await?;

    let metrics = Metrics::start(bench.cluster, NAMESPACE, Pods::Known).await?;
    let all: Api<HorizontalPodAutoscaler> = Api::all(bench.client.clone());
    set_load(&metrics, autoscalers, LOADS[0]);
    let since = version(&all).await?;
    in_parallel(autoscalers, async |at| create_autoscaler(bench, at).await).await?;
    // The load changes when the last one has told the former: then all that is measured is one period.
    told(&all, since, autoscalers, LOADS[0]).await?;
    let tell = async |_: &mut Bench<'_>| {
        let since = version(&all).await?;
        set_load(&metrics, autoscalers, LOADS[1]);
        told(&all, since, autoscalers, LOADS[1]).await
    };
    bench.measure(STEP, tell).await?;

    in_parallel(namespaces, async |at| clear(bench, &namespace(at)).await).await?;
    bench.wait_until("gone", async || Ok(count(&pods).await? == 0)).await?;
    withdraw(&bench.client).await
}

fn namespace(at: u32) -> String {
    format!("bench-scaled-{at:03}")
}

fn namespace_of(autoscaler: u32) -> String {
    namespace(autoscaler / PER_NAMESPACE)
}

fn set_load(metrics: &Metrics, autoscalers: u32, percentage: i32) {
    for at in 0..autoscalers {
        metrics.of(&namespace_of(at)).set_cpu(&small(at), i64::from(percentage));
    }
}

async fn create_target(bench: &Bench<'_>, at: u32) -> Result<()> {
    let mut target = deployment(&small(at), 1);
    if let Some(spec) = target["spec"].as_object_mut() {
        spec.remove("strategy");
    }
    target["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(REQUESTED);
    create::<ReplicaSet>(&Api::namespaced(bench.client.clone(), &namespace_of(at)), target).await.map(drop)
}

async fn create_autoscaler(bench: &Bench<'_>, at: u32) -> Result<()> {
    let name = small(at);
    let target = json!({"type": "Utilization", "averageUtilization": LOADS[0]});
    let autoscaler = json!({
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name},
            "minReplicas": 1, "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    });
    let autoscalers = Api::namespaced(bench.client.clone(), &namespace_of(at));
    create::<HorizontalPodAutoscaler>(&autoscalers, autoscaler).await.map(drop)
}

async fn version(all: &Api<HorizontalPodAutoscaler>) -> Result<String> {
    let first = all.list_metadata(&ListParams::default().limit(1)).await?;
    first.metadata.resource_version.context("a list without a resourceVersion")
}

/// Waits until so many have told this load since that version. Watched, for lists of a thousand again and again would be
/// most of the work.
async fn told(
    all: &Api<HorizontalPodAutoscaler>,
    mut version: String,
    autoscalers: u32,
    percentage: i32,
) -> Result<()> {
    let end = Instant::now() + DEADLINE;
    let wanted = usize::try_from(autoscalers)?;
    let mut told = BTreeSet::new();
    while told.len() < wanted {
        let mut events = pin!(all.watch(&WatchParams::default(), &version).await?);
        while told.len() < wanted {
            let Ok(event) = timeout_at(end, events.next()).await else {
                bail!("only {} of {wanted} autoscalers told of {percentage} % within {DEADLINE:?}", told.len());
            };
            match event {
                Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    version = object.resource_version().context("an object without a resourceVersion")?;
                    if tells(&object, percentage) {
                        told.insert(object.uid());
                    }
                }
                Some(Ok(WatchEvent::Bookmark(bookmark))) => version = bookmark.metadata.resource_version,
                Some(Ok(WatchEvent::Deleted(_))) => {}
                Some(Ok(WatchEvent::Error(status))) => bail!("a watch of autoscalers failed: {status:?}"),
                Some(Err(error)) => return Err(error).context("watch autoscalers"),
                // A watch has an end; the next one goes on from there.
                None => break,
            }
        }
    }
    Ok(())
}

fn tells(autoscaler: &HorizontalPodAutoscaler, percentage: i32) -> bool {
    let status = autoscaler.status.as_ref();
    let mut metrics = status.and_then(|status| status.current_metrics.as_ref()).into_iter().flatten();
    metrics.any(|metric| {
        let resource = metric.resource.as_ref();
        resource.is_some_and(|resource| resource.current.average_utilization == Some(percentage))
    })
}

async fn clear(bench: &Bench<'_>, namespace: &str) -> Result<()> {
    let (how, all) = (DeleteParams::background().grace_period(0), ListParams::default());
    let autoscalers: Api<HorizontalPodAutoscaler> = Api::namespaced(bench.client.clone(), namespace);
    autoscalers.delete_collection(&how, &all).await?;
    let targets: Api<ReplicaSet> = Api::namespaced(bench.client.clone(), namespace);
    targets.delete_collection(&how, &all).await?;
    let pods: Api<Pod> = Api::namespaced(bench.client.clone(), namespace);
    pods.delete_collection(&how, &all).await?;
    Ok(())
}
