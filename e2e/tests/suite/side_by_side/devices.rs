//! Claims of devices that pods get, share, wait for and give back, and devices that a driver or a rule taints: what is left,
//! and what people are told.
//!
//! Left out: how often an event is repeated, as upstream's controllers repeat theirs while something is missing.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::{api, apply};
use e2e::cluster::ClusterOptions;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

use super::{Fewest, compare_on, mask};
use crate::support::devices::{
    claim_of, claim_template, device, device_class, has_claim, runs, sharing, tainted, user,
};
use crate::support::{DEADLINE, Scene};

const CONTROLLERS: [&str; 2] = ["device-taint-eviction-controller", "resource_claim"];
const HOUR: Duration = Duration::from_hours(1);
const RULE: (&str, &str) = ("resource.k8s.io/v1beta2", "DeviceTaintRule");

/// A short name of its own in the cluster: names of devices are labels.
fn named(scene: &Scene, name: &str) -> String {
    format!("{}-{name}", side(scene))
}

/// The last part of the namespace's name, which tells the two lives apart.
fn side(scene: &Scene) -> &str {
    scene.namespace.rsplit('-').next().unwrap_or_default()
}

/// A device and a pod that runs with it; gives the name of the pod's claim.
async fn use_device(scene: &Scene, name: &str, tolerated: Duration) -> Result<String> {
    device(scene, &named(scene, name), &json!([])).await?;
    claim_template(scene, &named(scene, name), tolerated).await?;
    user(scene, name, &named(scene, name)).await?;
    let claim = has_claim(scene, name).await?;
    runs(scene, name).await?;
    Ok(claim)
}

/// Two pods share a claim, and one after the other goes.
async fn share(scene: &Scene) -> Result<()> {
    device(scene, &named(scene, "shared"), &json!([])).await?;
    scene.apply(&claim_of("shared", &named(scene, "shared"))).await?;
    for pod in ["first", "second"] {
        sharing(scene, pod, "shared").await?;
        runs(scene, pod).await?;
    }
    scene.delete_pod("first").await?;
    let users = async |wanted: usize| {
        scene
            .wait_until(&format!("{wanted} pods have the claim"), DEADLINE, async || {
                let status = scene.fetch::<ResourceClaim>("shared").await?.status.unwrap_or_default();
                let users = status.reserved_for.unwrap_or_default().len();
                ensure!(users == wanted && status.allocation.is_some() == (wanted > 0), "{users}");
                Ok(())
            })
            .await
    };
    users(1).await?;
    scene.delete_pod("second").await?;
    users(0).await
}

async fn live(scene: &Scene) -> Result<()> {
    device_class(scene).await?;
    use_device(scene, "runs", HOUR).await?;
    share(scene).await?;

    let claim = use_device(scene, "ended", HOUR).await?;
    scene.end_pod("ended", 0).await?;
    scene.gone::<ResourceClaim>(&claim).await?;

    user(scene, "lacks", "missing").await?;
    scene.told("FailedResourceClaimCreation").await?;
    claim_template(scene, &named(scene, "waits"), HOUR).await?;
    user(scene, "waits", &named(scene, "waits")).await?;
    has_claim(scene, "waits").await?;

    let claim = use_device(scene, "evicted", Duration::ZERO).await?;
    device(scene, &named(scene, "evicted"), &tainted()).await?;
    scene.gone::<Pod>("evicted").await?;
    // The garbage collector deletes it after its pod.
    scene.gone::<ResourceClaim>(&claim).await?;
    use_device(scene, "tolerant", HOUR).await?;
    device(scene, &named(scene, "tolerant"), &tainted()).await?;
    device(scene, &named(scene, "tolerant"), &json!([])).await?;
    cancelled(scene).await?;

    use_device(scene, "ruled", Duration::ZERO).await?;
    let rule = json!({"apiVersion": RULE.0, "kind": RULE.1, "metadata": {"name": named(scene, "rule")},
        "spec": {"deviceSelector": {"pool": named(scene, "ruled")}, "taint": tainted()[0]}});
    apply(&scene.client, "", &rule).await?;
    scene.gone::<Pod>("ruled").await?;
    scene
        .wait_until("the rule says so", DEADLINE, async || {
            let rule = find_rule(scene).await?;
            ensure!(rule.data.to_string().contains("1 pod evicted"), "{}", rule.data);
            Ok(())
        })
        .await
}

async fn cancelled(scene: &Scene) -> Result<()> {
    scene
        .wait_until("the deletion is cancelled", DEADLINE, async || {
            let events = scene.events("DeviceTaintManagerEviction").await?;
            let is_told = |event: &Event| event.message.as_deref() == Some("Cancelling deletion");
            ensure!(events.iter().any(is_told), "{events:?}");
            Ok(())
        })
        .await
}

async fn find_rule(scene: &Scene) -> Result<DynamicObject> {
    api(&scene.client, RULE.0, RULE.1, "").await?.get(&named(scene, "rule")).await.context("get the rule")
}

fn without_names(scene: &Scene, text: &str) -> String {
    text.replace(&scene.namespace, "<namespace>").replace(&format!("{}-", side(scene)), "<side>-")
}

async fn words(scene: &Scene) -> Result<Vec<String>> {
    let mut lines = BTreeSet::new();
    let claims = scene.api::<ResourceClaim>().list(&ListParams::default()).await?.items;
    for event in scene.list::<Event>("").await? {
        let component = event.source.clone().and_then(|source| source.component).unwrap_or_default();
        if CONTROLLERS.contains(&component.as_str()) {
            let about = &event.involved_object;
            let message = event.message.unwrap_or_default();
            let message = claims.iter().fold(message, |message, claim| message.replace(&claim.name_any(), "<claim>"));
            let line =
                format!("{component} {:?} {:?} {:?} {:?} {message}", about.kind, about.name, event.type_, event.reason);
            lines.insert(without_names(scene, &line));
        }
    }
    Ok(lines.into_iter().collect())
}

/// A line for each of what is left.
async fn left(scene: &Scene) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for claim in scene.list::<ResourceClaim>("").await? {
        let owner = claim.owner_references().iter().map(|owner| owner.name.clone()).next();
        let mut claim = serde_json::to_value(claim)?;
        mask(&mut claim);
        if let Some(owner) = owner {
            // Its end is random.
            claim["metadata"]["name"] = json!(format!("of {owner}"));
        }
        if let Some(allocation) = claim["status"]["allocation"].as_object_mut() {
            allocation.remove("allocationTimestamp");
        }
        lines.push(without_names(scene, &serde_json::to_string_pretty(&claim)?));
    }
    for pod in scene.list::<Pod>("").await? {
        let status = pod.status.clone().unwrap_or_default();
        let recorded = status.resource_claim_statuses.into_iter().flatten();
        let recorded: Vec<(String, bool)> = recorded.map(|one| (one.name, one.resource_claim_name.is_some())).collect();
        lines.push(format!("Pod {} {:?} {recorded:?}", pod.name_any(), status.phase));
    }
    let mut rule: Value = serde_json::to_value(find_rule(scene).await?)?;
    mask(&mut rule);
    rule["spec"]["taint"]["timeAdded"] = Value::Null;
    lines.push(without_names(scene, &serde_json::to_string_pretty(&rule)?));
    lines.sort();
    Ok(lines)
}

#[test]
fn the_operators_leave_of_devices_what_upstream_leaves() -> Result<()> {
    let options = ClusterOptions::with_controller_manager().with_gated_kinds();
    compare_on(options, Fewest { events: 4, objects: 6 }, &live, &left, &words)
}
