//! Endpoints: how many addresses they list, what they say besides, and when what they answer to happened.
//! Left out: which pods and ports are listed, which `takeover/derived.rs` compares with upstream's for many Services.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Pod};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, deployment, on_shared_cluster, template, without_kubelets};

const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// As many addresses as Endpoints may have.
const MOST: usize = 1000;

/// A Service of the pods labelled `app=NAME`, with these fields of its spec besides.
pub(crate) fn service(name: &str, fields: &Value) -> Value {
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        service["spec"][field] = value.clone();
    }
    service
}

/// A pod labelled `app=APP`.
pub(crate) fn pod(name: &str, app: &str) -> Value {
    let mut pod = template(app);
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    pod
}

/// How many addresses there are: ready ones, and others.
pub(crate) fn counts(endpoints: &Endpoints) -> [usize; 2] {
    let subsets = || endpoints.subsets.iter().flatten();
    let ready = subsets().map(|subset| subset.addresses.as_ref().map_or(0, Vec::len)).sum();
    [ready, subsets().map(|subset| subset.not_ready_addresses.as_ref().map_or(0, Vec::len)).sum()]
}

/// The Endpoints of a Service, once they have so many ready addresses and so many others.
pub(crate) async fn listed(scene: &Scene, service: &str, expected: [usize; 2]) -> Result<Endpoints> {
    scene
        .wait_until(&format!("{service} lists {expected:?}"), DEADLINE, async || {
            let endpoints: Endpoints = scene.fetch(service).await?;
            let found = counts(&endpoints);
            ensure!(found == expected, "{found:?}");
            Ok(endpoints)
        })
        .await
}

fn annotation<'a>(endpoints: &'a Endpoints, name: &str) -> Option<&'a str> {
    endpoints.annotations().get(name).map(String::as_str)
}

#[test]
fn a_thousand_addresses_are_listed_and_who_reads_them_is_told_that_there_are_more() -> Result<()> {
    without_kubelets(async |scene| {
        scene.apply(&service("many", &json!({}))).await?;
        scene.apply(&deployment("many", i32::try_from(MOST)? + 2)).await?;
        listed(scene, "many", [MOST, 0]).await?;
        scene
            .wait_until("they say that there are more", DEADLINE, async || {
                let endpoints: Endpoints = scene.fetch("many").await?;
                let found = annotation(&endpoints, OVER_CAPACITY);
                ensure!(found == Some("truncated"), "{found:?}");
                Ok(())
            })
            .await?;
        let fewer = json!({"spec": {"replicas": MOST - 1}});
        scene.patch::<Deployment>("many", &fewer).await?;
        let endpoints = listed(scene, "many", [MOST - 1, 0]).await?;
        ensure!(annotation(&endpoints, OVER_CAPACITY).is_none(), "{:?}", endpoints.metadata);
        Ok(())
    })
}

#[test]
fn endpoints_say_when_what_they_answer_to_happened_and_whether_there_is_no_ip() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&service("web", &json!({"clusterIP": "None"}))).await?;
        let endpoints = listed(scene, "web", [0, 0]).await?;
        let labels = endpoints.labels();
        let headless = labels.get("service.kubernetes.io/headless").map(String::as_str);
        let manager = labels.get("endpoints.kubernetes.io/managed-by").map(String::as_str);
        ensure!((headless, manager) == (Some(""), Some("endpoint-controller")), "{labels:?}");
        scene.apply(&pod("web-0", "web")).await?;
        let endpoints = listed(scene, "web", [1, 0]).await?;
        let ready: Pod = scene.fetch("web-0").await?;
        let mut conditions = ready.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.find(|condition| condition.type_ == "Ready").context("it has no condition Ready")?;
        let since = ready.last_transition_time.as_ref().map(|time| time.0.to_string());
        let trigger = annotation(&endpoints, TRIGGER_TIME).map(str::to_owned);
        ensure!(trigger == since, "{trigger:?} instead of {since:?}");

        // Unready pods are listed as such, unless the Service asks for them.
        let mut slow = pod("web-1", "web");
        slow["metadata"]["annotations"] = json!({"pods.e2e/becomes": "never-ready"});
        slow["spec"]["readinessGates"] = json!([{"conditionType": "e2e.example/never"}]);
        scene.apply(&slow).await?;
        listed(scene, "web", [1, 1]).await?;
        scene.apply(&service("web", &json!({"clusterIP": "None", "publishNotReadyAddresses": true}))).await?;
        listed(scene, "web", [2, 0]).await?;
        // One without ports has addresses alone.
        let mut unported = service("unported", &json!({"clusterIP": "None", "selector": {"app": "web"}}));
        unported["spec"].as_object_mut().map(|spec| spec.remove("ports"));
        scene.apply(&unported).await?;
        let endpoints = listed(scene, "unported", [1, 1]).await?;
        let ports = endpoints.subsets.iter().flatten().filter(|subset| subset.ports.is_some()).count();
        ensure!(ports == 0, "{endpoints:?}");
        scene.kubectl("delete pod/web-0 pod/web-1").await?;
        listed(scene, "web", [0, 0]).await.map(drop)
    })
}
