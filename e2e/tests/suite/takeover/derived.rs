//! Objects that say what others are: Endpoints, the usage of quotas, ServiceCIDRs and aggregated ClusterRoles. They
//! change hands on a live cluster, in both directions, without a write, and each side makes the same ones.
//!
//! Left out of what is compared: times.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::upstream_controller;
use k8s_openapi::api::core::v1::{EndpointSubset, Endpoints, ResourceQuota, Service};
use k8s_openapi::api::networking::v1::ServiceCIDR;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::endpointslice::handover::{pods, services};
use crate::quota::counts::{fill, limit, limit_anew};
use crate::quota::{quota, uses};
use crate::support::{DEADLINE, Scene, start_operators, with_cluster};

const OPERATORS: [&str; 4] =
    ["endpoints-operator", "resourcequota-operator", "service-cidr-operator", "clusterrole-aggregation-operator"];
/// The ranges, each with whether it is to go.
const RANGES: [(&str, &str, bool); 3] =
    [("outer", "10.252.0.0/16", false), ("nested", "10.252.4.0/24", false), ("leaving", "10.253.0.0/24", true)];
/// An address of the range that is to go.
const ADDRESS: &str = "10.253.0.10";
/// Endpoints whose Service has a reserved label. Upstream never finds their labels right, and sends them at each look.
const RESERVED: &str = "Endpoints labelled";
/// The role that gets the rules of others.
const WHOLE: &str = "whole";
const LABEL: &str = "e2e.example/aggregate";

async fn aggregate(scene: &Scene, name: &str) -> Result<()> {
    let mut whole = role(name);
    let selectors = [json!({"matchLabels": {LABEL: "b"}}), json!({"matchLabels": {LABEL: "a"}})];
    whole["aggregationRule"] = json!({"clusterRoleSelectors": selectors});
    apply(&scene.client, "", &whole).await?;
    let roles: Api<ClusterRole> = Api::all(scene.client.clone());
    scene
        .wait_until(&format!("{name} has the rules of its parts"), DEADLINE, async || {
            let rules = roles.get(name).await?.rules.unwrap_or_default();
            ensure!(rules.len() == 3, "{rules:?}");
            Ok(())
        })
        .await
}

fn role(name: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}})
}

/// Two roles that have a rule in common.
async fn parts(scene: &Scene) -> Result<()> {
    let rule = |verb: &str| json!({"apiGroups": ["e2e.example"], "resources": ["widgets"], "verbs": [verb]});
    for (label, verbs) in [("a", ["get", "list"]), ("b", ["list", "watch"])] {
        let mut part = role(&format!("part-{label}"));
        part["metadata"]["labels"] = json!({LABEL: label});
        part["rules"] = json!(verbs.map(rule));
        apply(&scene.client, "", &part).await?;
    }
    Ok(())
}

/// Makes a range and, if it is to go, takes an address of it and deletes it: it stays for that address.
async fn range(scene: &Scene, (name, cidr, goes): (&str, &str, bool)) -> Result<()> {
    let ranges: Api<ServiceCIDR> = Api::all(scene.client.clone());
    let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name},
        "spec": {"cidrs": [cidr]}});
    apply(&scene.client, "", &object).await?;
    stands(scene, name, ("True", "")).await?;
    if goes {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"clusterIP": ADDRESS, "ports": [{"port": 80}]}});
        // The apiserver has to see the range first.
        scene.wait_until("a Service has its address", DEADLINE, async || scene.apply(&service).await.map(drop)).await?;
        ranges.delete(name, &DeleteParams::default()).await.context("delete the range")?;
        stands(scene, name, ("False", "Terminating")).await?;
    }
    Ok(())
}

/// Waits until the condition of a range is this one.
async fn stands(scene: &Scene, name: &str, expected: (&str, &str)) -> Result<()> {
    let ranges: Api<ServiceCIDR> = Api::all(scene.client.clone());
    scene
        .wait_until(&format!("{name} is Ready={expected:?}"), DEADLINE, async || {
            let conditions = ranges.get(name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
            let found = conditions.iter().find(|condition| condition.type_ == "Ready");
            let found = found.map(|ready| (ready.status.as_str(), ready.reason.as_str()));
            ensure!(found == Some(expected), "{found:?}");
            Ok(())
        })
        .await
}

/// Waits until the Endpoints of each Service list as many pods as its slices do.
async fn listed(scene: &Scene) -> Result<()> {
    scene
        .wait_until("every Service has its Endpoints", DEADLINE, async || {
            for (name, _, _, wanted) in services() {
                let endpoints: Endpoints = scene.fetch(name).await?;
                let count = |subset: &EndpointSubset| {
                    let all = [&subset.addresses, &subset.not_ready_addresses];
                    all.map(|addresses| addresses.as_ref().map_or(0, Vec::len)).iter().sum::<usize>()
                };
                let found: usize = endpoints.subsets.iter().flatten().map(count).sum();
                ensure!(found == wanted, "{name} has {found} of {wanted}: {endpoints:?}");
                let wanted = if name == "slow" { 0 } else { wanted };
                let ready = endpoints.subsets.iter().flatten().flat_map(|subset| subset.addresses.iter().flatten());
                ensure!(ready.count() == wanted, "{name}: {endpoints:?}");
            }
            Ok(())
        })
        .await
}

/// All that the four keep, by kind and name.
async fn kept(scene: &Scene) -> Result<BTreeMap<String, Value>> {
    fn add<K: Serialize + ResourceExt>(all: &mut BTreeMap<String, Value>, kind: &str, objects: Vec<K>) -> Result<()> {
        for object in objects.into_iter().filter(|object| !object.name_any().starts_with("marker")) {
            all.insert(format!("{kind} {}", object.name_any()), serde_json::to_value(object)?);
        }
        Ok(())
    }
    let mut all = BTreeMap::new();
    add(&mut all, "Endpoints", scene.list::<Endpoints>("").await?)?;
    add(&mut all, "ResourceQuota", scene.list::<ResourceQuota>("").await?)?;
    let ranges: Api<ServiceCIDR> = Api::all(scene.client.clone());
    add(&mut all, "ServiceCIDR", ranges.list(&ListParams::default()).await?.items)?;
    let roles: Api<ClusterRole> = Api::all(scene.client.clone());
    let mut aggregated = roles.list(&ListParams::default()).await?.items;
    aggregated.retain(|role| role.aggregation_rule.is_some());
    add(&mut all, "ClusterRole", aggregated)?;
    Ok(all)
}

/// The version of each: equal if nobody has written anything.
fn versions(kept: &BTreeMap<String, Value>) -> Vec<String> {
    let line = |(name, object): (&String, &Value)| format!("{name} {}", object["metadata"]["resourceVersion"]);
    kept.iter().map(line).collect()
}

/// Each as it is, but for times and identities.
fn masked(kept: BTreeMap<String, Value>) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for (name, mut object) in kept {
        let meta = object["metadata"].as_object_mut().context("without metadata")?;
        for field in ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields"] {
            meta.remove(field);
        }
        if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("endpoints.kubernetes.io/last-change-trigger-time");
        }
        meta.retain(|field, value| field != "annotations" || value.as_object().is_some_and(|all| !all.is_empty()));
        for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"] = Value::Null;
        }
        lines.push(format!("{name} {}", serde_json::to_string_pretty(&object)?));
    }
    Ok(lines)
}

/// Waits until something of each kind that is made now is seen to: so all that was there has been looked at, too.
async fn marker(scene: &Scene, step: &str) -> Result<()> {
    let name = format!("marker-{step}");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}});
    scene.apply(&service).await?;
    scene.wait_until("its Endpoints", DEADLINE, async || scene.fetch::<Endpoints>(&name).await.map(drop)).await?;
    scene.apply(&quota(&name, &json!({"count/jobs.batch": "1"}))).await?;
    uses(scene, &name, &json!({"count/jobs.batch": "0"})).await?;
    aggregate(scene, &name).await?;
    let cidr = format!("10.249.{}.0/24", step.len());
    range(scene, (name.as_str(), cidr.as_str(), false)).await
}

/// The same once more: under whoever is at work now.
async fn make_anew(scene: &Scene, counted: &Scene) -> Result<()> {
    scene.api::<Endpoints>().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    listed(scene).await?;
    let roles: Api<ClusterRole> = Api::all(scene.client.clone());
    roles.delete(WHOLE, &DeleteParams::default()).await?;
    aggregate(scene, WHOLE).await?;
    limit_anew(counted).await?;
    // It goes with its last address, and comes again.
    let (leaving, ..) = RANGES[2];
    scene.api::<Service>().delete(leaving, &DeleteParams::default()).await?;
    let ranges: Api<ServiceCIDR> = Api::all(scene.client.clone());
    scene.gone_from(&ranges, leaving).await?;
    range(scene, RANGES[2]).await
}

#[test]
fn what_says_what_others_are_changes_hands_without_a_write_and_is_made_anew_alike() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        pods(scene).await?;
        for (_, service, ..) in services() {
            scene.apply(&service).await?;
        }
        let counted = scene.beside("counted").await?;
        fill(&counted).await?;
        limit(&counted).await?;
        parts(scene).await?;
        aggregate(scene, WHOLE).await?;
        for of in RANGES {
            range(scene, of).await?;
        }
        listed(scene).await?;
        marker(scene, "a").await?;
        let all = async || -> Result<BTreeMap<String, Value>> {
            let mut all = kept(scene).await?;
            all.extend(kept(&counted).await?);
            Ok(all)
        };
        let before = all().await?;

        let rest = ControllerManager::without(OPERATORS.map(upstream_controller));
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(rest).await?;
        let mut operators = start_operators(&scene.cluster, OPERATORS).await?;
        marker(scene, "bb").await?;
        assert_eq!(versions(&all().await?), versions(&before), "the operators wrote what needed no write");

        make_anew(scene, &counted).await?;
        let anew = all().await?;
        for (expected, found) in masked(before)?.iter().zip(&masked(anew)?) {
            assert_eq!(found, expected);
        }

        let left = all().await?;
        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.stop_controller_manager().await?;
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        marker(scene, "ccc").await?;
        let [mut expected, mut found] = [left, all().await?];
        for all in [&mut expected, &mut found] {
            all.remove(RESERVED);
        }
        assert_eq!(versions(&found), versions(&expected), "what the operators left was not what upstream expects");
        Ok(())
    })
}
