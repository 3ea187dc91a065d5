//! What `kubectl operators why` says first of objects that a person made get stuck, on a real apiserver.
//!
//! Left out: most states. They are a table over evidence in `cli/tests/states`; here is what only a cluster can show, which
//! is that the evidence is found.

use anyhow::{Context, Result, ensure};
use cli::diagnosis::Diagnosis;
use cli::reach::ReachOptions;
use cli::run::Session;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene, deployment, on_shared_cluster, template, without_kubelets};

/// Waits until the first line begins so and has all of these in it.
async fn says(scene: &Scene, object: &str, begins: &str, has: &[&str]) -> Result<Diagnosis> {
    let config = e2e::kubeconfig::config(scene.cluster.kubeconfig()).await?;
    let session = Session::new(config, ReachOptions::default()).await?;
    scene
        .wait_until(&format!("{object}: {begins}"), DEADLINE, async || {
            let found = session.why(&[object.to_owned()], &scene.namespace).await?;
            let is_it = found.summary.starts_with(begins) && has.iter().all(|part| found.summary.contains(part));
            ensure!(is_it, "{found}");
            Ok(found)
        })
        .await
}

/// A Deployment of one pod whose template has this, too.
fn with_pod(name: &str, metadata: &Value, spec: &Value) -> Value {
    let mut object = deployment(name, 1);
    let merge = |into: &mut Value, from: &Value| {
        for (key, value) in from.as_object().into_iter().flatten() {
            into[key] = value.clone();
        }
    };
    merge(&mut object["spec"]["template"]["metadata"], metadata);
    merge(&mut object["spec"]["template"]["spec"], spec);
    object
}

#[test]
fn pods_that_are_refused_are_the_cause_and_who_refuses_them() -> Result<()> {
    on_shared_cluster(async |scene| {
        scene.apply(&with_pod("robot", &json!({}), &json!({ "serviceAccountName": "nobody" }))).await?;
        says(
            scene,
            "deployment/robot",
            "robot: 1 of 1 pod missing: ReplicaSet robot-",
            &["there is no ServiceAccount `nobody`"],
        )
        .await?;
        scene.kubectl("delete deployment robot").await?;

        scene.limit_pods("team", 1).await?;
        scene.apply(&deployment("web", 3)).await?;
        let found = says(
            scene,
            "deploy/web",
            "web: 2 of 3 pods missing: ReplicaSet web-",
            &[" is refused by quota `team` (pods 1/1)"],
        )
        .await?;
        let chain: Vec<&str> = found.chain.iter().map(|link| link.about.as_str()).collect();
        assert!(chain.contains(&"event FailedCreate") && chain.contains(&"resourcequota/team"), "{found}");
        let set = scene.list::<ReplicaSet>("app=web").await?.pop().context("no ReplicaSet")?.name_any();
        let found = says(scene, &format!("rs/{set}"), &format!("{set}: 2 of 3 pods missing"), &["`team`"]).await?;
        assert_eq!(found.chain.first().map(|link| link.about.as_str()), Some("deployment/web"), "{found}");
        Ok(())
    })
}

#[test]
fn a_deployment_says_what_it_waits_for() -> Result<()> {
    without_kubelets(async |scene| {
        let of_pods = |name: &str, becomes: &str| {
            with_pod(
                name,
                &json!({ "labels": { "app": name }, "annotations": { "pods.e2e/becomes": becomes } }),
                &json!({}),
            )
        };
        scene.apply(&of_pods("image", "never-started")).await?;
        scene.apply(&of_pods("probe", "never-ready")).await?;
        scene.apply(&with_pod("node", &json!({}), &json!({ "nodeSelector": { "disk": "none" } }))).await?;
        scene.apply(&deployment("none", 0)).await?;
        scene.apply(&deployment("web", 2)).await?;
        scene.rolled_out("web").await?;
        says(scene, "deployment/web", "web: 2 of 2 pods are there and ready", &[]).await?;
        says(scene, "deployment/none", "none: no pod is asked for (replicas: 0)", &[]).await?;
        says(
            scene,
            "deployment/image",
            "image: 1 of 1 pod is not ready: image-",
            &["cannot be pulled (ImagePullBackOff)"],
        )
        .await?;
        says(scene, "deployment/probe", "probe: 1 of 1 pod is not ready: probe-", &["container main is not ready"])
            .await?;
        says(scene, "deployment/node", "node: 1 of 1 pod is not ready: node-", &["no node takes it: 0/"]).await?;
        scene.kubectl("rollout pause deployment/web").await?;
        scene.kubectl("set env deployment/web STEP=2").await?;
        says(scene, "deployment/web", "web: its rollout is paused: 0 of 2 pods are of the new template", &[]).await?;
        says(scene, "deployment/wep", "wep: there is no such Deployment", &["there is web"]).await?;
        Ok(())
    })
}

#[test]
fn jobs_and_services_say_why_they_do_nothing() -> Result<()> {
    without_kubelets(async |scene| {
        let job = |name: &str, spec: &Value, annotations: &Value| {
            let mut pod = template(name);
            pod["spec"]["restartPolicy"] = json!("Never");
            pod["metadata"]["annotations"] = annotations.clone();
            let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec});
            job["spec"]["template"] = pod;
            job
        };
        let exits = json!({ "pods.e2e/becomes": "exited", "pods.e2e/exit-code": "1" });
        scene.apply(&job("asleep", &json!({ "suspend": true }), &json!({}))).await?;
        scene.apply(&job("broken", &json!({ "backoffLimit": 0 }), &exits)).await?;
        scene.kubectl("create cronjob nightly --image=pause --schedule=@yearly").await?;
        scene.kubectl("create service clusterip lost --tcp=80").await?;
        says(scene, "job/asleep", "asleep: suspended", &[]).await?;
        says(scene, "job/broken", "broken: failed: 1 pod failed, and its backoffLimit is 0", &[]).await?;
        says(scene, "cj/nightly", "nightly: not due yet: schedule `@yearly`", &[]).await?;
        says(scene, "svc/lost", "lost: it leads nowhere: no pod has the labels app=lost", &[]).await?;
        Ok(())
    })
}

#[test]
fn what_does_not_go_names_the_finalizer() -> Result<()> {
    on_shared_cluster(async |scene| {
        let doomed = scene.beside("doomed").await?;
        let held = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["e2e.example/hold"]},
        });
        doomed.apply(&held).await?;
        doomed.delete_namespace().await?;
        let object = format!("ns/{}", doomed.namespace);
        says(&doomed, &object, &format!("{}: deleted", doomed.namespace), &["configmaps has 1", "`e2e.example/hold`"])
            .await?;
        says(&doomed, "cm/held", "held: deleted", &["waits for the finalizer `e2e.example/hold`"]).await?;
        doomed.patch::<ConfigMap>("held", &json!({"metadata": {"finalizers": null}})).await?;
        doomed.namespace_gone().await?;

        scene.apply(&deployment("web", 1)).await?;
        scene.rolled_out("web").await?;
        let set = scene.list::<ReplicaSet>("app=web").await?.pop().context("no ReplicaSet")?.name_any();
        scene.patch::<ReplicaSet>(&set, &json!({"metadata": {"finalizers": ["e2e.example/hold"]}})).await?;
        scene.kubectl("delete deployment web --cascade=foreground --wait=false").await?;
        let blocked = format!("replicaset/{set}");
        let found =
            says(scene, "deployment/web", "web: deleted", &["in the foreground", &blocked, "`e2e.example/hold`"]).await;
        scene.patch::<ReplicaSet>(&set, &json!({"metadata": {"finalizers": null}})).await?;
        found.map(drop)
    })
}
