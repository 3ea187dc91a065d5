//! Each operator may do what it does, and nothing else.

mod cluster;

use anyhow::{Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::kubectl::kustomize;
use e2e::rbac::{self, Usage};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Event, Pod, ReplicationController, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::batch;
use crate::support::clusters::{manifests, spec};
use crate::support::scene::Namespaced;
use crate::support::{
    DEADLINE, OPERATORS, Scene, deployment, on_shared_cluster, start_operators, template, with_cluster,
};

/// A Deployment's life: rolled out, undone, cleaned up, released, orphaned, adopted.
async fn live_as_deployment(scene: &Scene) -> Result<()> {
    let web = deployment("web", 3);
    scene.apply(&web).await?;
    scene.rolled_out("web").await?;
    scene.kubectl("set env deployment/web STEP=2").await?;
    scene.rolled_out("web").await?;
    scene.kubectl("annotate deployment/web deprecated.deployment.rollback.to=1").await?;
    scene
        .wait_until("the rollback is under way", DEADLINE, async || {
            let web: Deployment = scene.fetch("web").await?;
            ensure!(!web.annotations().contains_key("deprecated.deployment.rollback.to"), "still asked for");
            Ok(())
        })
        .await?;
    scene.rolled_out("web").await?;
    scene.patch::<Deployment>("web", &json!({"spec": {"revisionHistoryLimit": 0}})).await?;
    // The same twice: the second time its event is counted up.
    for replicas in [5, 3, 5] {
        scene.kubectl(&format!("scale deployment/web --replicas={replicas}")).await?;
        scene.rolled_out("web").await?;
    }
    let set = scene
        .wait_until("the old ReplicaSet is removed", DEADLINE, async || {
            let mut sets: Vec<ReplicaSet> = scene.list("app=web").await?;
            ensure!(sets.len() == 1, "{} ReplicaSets", sets.len());
            Ok(sets.remove(0))
        })
        .await?;
    relabel::<ReplicaSet>(scene, &set.name_any(), "other").await?;
    scene.rolled_out("web").await?;
    scene.kubectl("delete deployment/web --cascade=orphan").await?;
    scene.apply(&web).await?;
    scene.rolled_out("web").await
}

/// Changes the label that selects an object, waits until it is nobody's, and changes it back.
async fn relabel<K: Namespaced>(scene: &Scene, name: &str, app: &str) -> Result<()> {
    scene.patch::<K>(name, &json!({"metadata": {"labels": {"app": app}}})).await?;
    scene
        .wait_until(&format!("{name} is released"), DEADLINE, async || {
            let owners = scene.fetch::<K>(name).await?.owner_references().to_vec();
            ensure!(owners.is_empty(), "{owners:?}");
            Ok(())
        })
        .await
}

/// The life of a ReplicaSet or a ReplicationController: adopting, releasing, creating, deleting, being refused for long
/// enough that one event is counted up.
async fn live_as<K: Namespaced>(scene: &Scene, set: &Value) -> Result<()> {
    let (kind, app) = (K::kind(&()), set["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    let mut orphan = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": app, "labels": {"app": app}}});
    orphan["spec"] = template(&app)["spec"].clone();
    scene.apply(&orphan).await?;
    scene.apply(set).await?;
    scene
        .wait_until("the pod is adopted", DEADLINE, async || {
            let pod: Pod = scene.fetch(&app).await?;
            ensure!(!pod.owner_references().is_empty(), "nobody owns it");
            Ok(())
        })
        .await?;
    relabel::<Pod>(scene, &app, "free").await?;
    scene.kubectl(&format!("scale {kind}/{app} --replicas=1")).await?;
    scene.limit_pods("none", 0).await?;
    scene.kubectl(&format!("scale {kind}/{app} --replicas=4")).await?;
    scene
        .wait_until("an event is counted up", DEADLINE, async || {
            let events: Vec<Event> = scene.events("FailedCreate").await?;
            let counted = events.iter().filter(|event| event.involved_object.kind.as_deref() == Some(&*kind));
            let most = counted.filter_map(|event| event.count).max();
            ensure!(most > Some(1), "the highest count is {most:?}");
            Ok(())
        })
        .await?;
    scene.kubectl("delete resourcequota/none").await.map(drop)
}

/// Jobs that adopt, make too many pods, and go once they are over; a CronJob that has lost track of them.
async fn live_as_batch(scene: &Scene) -> Result<()> {
    let mut adopting = batch::running(batch::job("adopting", 1, 1));
    adopting["spec"]["manualSelector"] = json!(true);
    adopting["spec"]["selector"] = json!({"matchLabels": {"app": "adopting"}});
    let template = &adopting["spec"]["template"];
    scene
        .apply(&json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": {"app": "adopting"}},
            "spec": template["spec"],
        }))
        .await?;
    scene.apply(&adopting).await?;
    scene.apply(&batch::running(batch::job("shrinking", 2, 2))).await?;
    scene
        .wait_until("both have what they asked for", DEADLINE, async || {
            for (name, active) in [("adopting", 1), ("shrinking", 2)] {
                let status = batch::status(scene, name).await?;
                ensure!(status.active == Some(active), "{name}: {status:?}");
            }
            Ok(())
        })
        .await?;
    scene.patch::<Job>("shrinking", &json!({"spec": {"parallelism": 1}})).await?;

    let mut brief = batch::job("brief", 1, 1);
    brief["spec"]["ttlSecondsAfterFinished"] = json!(0);
    scene.apply(&brief).await?;
    for day in 1..=2 {
        let often = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"},
            "spec": {
                "schedule": format!("0 0 {day} 1 *"),
                "concurrencyPolicy": "Replace",
                "jobTemplate": {"spec": batch::running(batch::job("often", 1, 1))["spec"]},
            },
        });
        scene.apply(&often).await?;
        let missed = json!({"status": {"lastScheduleTime": "2020-02-20T00:00:00Z"}});
        scene.patch_status::<CronJob>("often", &missed).await?;
        scene
            .wait_until(&format!("the run of day {day} is active"), DEADLINE, async || {
                let status = scene.fetch::<CronJob>("often").await?.status.unwrap_or_default();
                let ran = status.last_schedule_time.map(|time| time.0.strftime("%d").to_string());
                ensure!(ran == Some(format!("0{day}")), "{ran:?}");
                Ok(())
            })
            .await?;
    }
    let reference = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "lost", "namespace": scene.namespace,
        "uid": "00000000-0000-4000-8000-000000000000"});
    scene.patch_status::<CronJob>("often", &json!({"status": {"active": [reference]}})).await?;
    scene.told("MissingJob").await?;
    scene.told("UnexpectedJob").await.map(drop)
}

/// Slices that come, change and go, and an event that is counted up.
async fn live_as_endpoint_slices(scene: &Scene) -> Result<()> {
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"step": name}},
            "spec": {"selector": {"app": "listed"}, "ports": [{"port": 80, "targetPort": "http"}]},
        })
    };
    scene.apply(&service("slices")).await?;
    // Each calls another port so, and is in a slice of its own.
    for (name, port) in [("listed-0", 8080), ("listed-1", 8081)] {
        let mut pod = template("listed");
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = name.into();
        pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": port}]);
        scene.apply(&pod).await?;
    }
    let slices = async |number: usize| {
        scene
            .wait_until(&format!("{number} slices"), DEADLINE, async || {
                let slices: Vec<EndpointSlice> = scene.list("kubernetes.io/service-name=slices").await?;
                let listed = slices
                    .iter()
                    .filter(|slice| slice.endpoints.as_ref().is_some_and(|endpoints| endpoints.len() == 1))
                    .count();
                ensure!((slices.len(), listed) == (number, number), "{slices:?}");
                Ok(())
            })
            .await
    };
    slices(2).await?;
    scene.kubectl("delete pod/listed-1").await?;
    slices(1).await?;
    // One endpoint cannot be spread over three zones, which is told at each look.
    let mode = "service.kubernetes.io/topology-mode";
    for step in 0..3 {
        let patch = json!({"metadata": {"annotations": {mode: "Auto"}, "labels": {"step": step.to_string()}}});
        scene.patch::<Service>("slices", &patch).await?;
        scene
            .wait_until("the event is posted, or counted up", DEADLINE, async || {
                let events = scene.events("TopologyAwareHintsDisabled").await?;
                let count = events.iter().filter_map(|event| event.count).max();
                ensure!(count > Some(step), "the highest count is {count:?}");
                Ok(())
            })
            .await?;
    }
    Ok(())
}

#[test]
fn each_role_allows_what_its_operator_does_and_nothing_else() -> Result<()> {
    let options = ClusterOptions { audit: true, audit_policy: rbac::AUDIT_POLICY, ..ClusterOptions::default() };
    with_cluster(options, async |scene| {
        let operators = start_operators(&scene.cluster, OPERATORS).await?;
        // Only who stands by watches the Lease.
        let mut standbys = Vec::new();
        for operator in OPERATORS {
            let mut of = spec(&scene.cluster, operator).await?;
            of.name.push_str("-standby");
            let mut standby = scene.cluster.start_operator(&of).await?;
            standby.wait_ready().await?;
            standbys.push(standby);
        }
        live_as_deployment(scene).await?;
        let of = |api_version: &str, kind: &str, name: &str, selector: Value| {
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name},
                "spec": {"replicas": 2, "selector": selector, "template": template(name)}})
        };
        let set = of("apps/v1", "ReplicaSet", "set", json!({"matchLabels": {"app": "set"}}));
        live_as::<ReplicaSet>(scene, &set).await?;
        let controller = of("v1", "ReplicationController", "controller", json!({"app": "controller"}));
        live_as::<ReplicationController>(scene, &controller).await?;
        cluster::live(scene).await?;

        live_as_batch(scene).await?;
        // Where no quota is left that admits no pods.
        live_as_endpoint_slices(&scene.beside("slices").await?).await?;

        let mut complaints = Vec::new();
        scene
            .wait_until("what was asked is what the roles say", DEADLINE, async || {
                complaints.clear();
                let usage = Usage::read(&std::fs::read_to_string(scene.cluster.audit_log()?)?)?;
                for operator in OPERATORS {
                    let grants = rbac::grants(&kustomize(&manifests(operator)).await?);
                    complaints.extend(usage.compare(operator, &grants));
                }
                ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
                Ok(())
            })
            .await?;
        drop((operators, standbys));
        Ok(())
    })
}

#[test]
fn the_apiserver_takes_every_manifest() -> Result<()> {
    on_shared_cluster(async |scene| {
        let all = manifests("");
        let all = all.to_str().unwrap();
        let answer = scene
            .cluster
            .kubectl(["apply", "--server-side", "--dry-run=server", "--force-conflicts", "-k", all])
            .await?;
        for operator in OPERATORS {
            assert!(answer.contains(&format!("deployment.apps/{operator} serverside-applied")), "{answer}");
        }
        Ok(())
    })
}
