//! A thousand objects of every kind that the operators act on, at rest under kube-controller-manager.
//!
//! Left out: objects that never come to rest, and what changes them: the `tamper` of each operator's life.

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ReplicationController;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::autoscaling::{autoscaler, cpu};
use crate::batch::job;
use crate::disruption::budget;
use crate::support::scene::Namespaced;
use crate::support::{DEADLINE, Scene, deployment, template};

/// How many of each kind.
const DEPLOYMENTS: usize = 200;
const SETS: usize = 150;
const CONTROLLERS: usize = 100;
const JOBS: usize = 150;
const CRON_JOBS: usize = 50;
const DAEMONS: usize = 20;
const SERVICES: usize = 250;
const BUDGETS: usize = 50;
const OWNED: usize = 50;
const NAMESPACES: usize = 50;
/// How many are made at a time.
const AT_ONCE: usize = 20;

fn set(api_version: &str, kind: &str, name: &str, selector: &Value) -> Value {
    let spec = json!({"replicas": 1, "selector": selector, "template": template(name)});
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn cron_job(name: &str) -> Value {
    let template = job("x", 1, 1)["spec"].clone();
    let spec = json!({"schedule": "30 4 2 1 *", "jobTemplate": {"spec": template}});
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec})
}

/// Its only pod is on the first node.
fn daemon(name: &str) -> Value {
    let mut template = template(name);
    template["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "node-0"});
    let spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": spec})
}

fn service(name: &str, app: &str) -> Value {
    let spec = json!({"selector": {"app": app}, "ports": [{"port": 80}]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// A Service without a selector, and its Endpoints.
fn custom() -> [Value; 2] {
    let metadata = json!({"name": "custom"});
    let subsets = json!([{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]);
    [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}),
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}),
    ]
}

/// A ConfigMap that a Deployment owns.
fn owned(name: &str, owner: &str, uid: &str) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": uid});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [owner]}})
}

/// A limit on Leases that leaves room.
fn quota() -> Value {
    let hard = json!({"count/leases.coordination.k8s.io": "10"});
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": hard}})
}

/// A Lease that the limit counts.
fn lease() -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "counted"}})
}

/// All of them but those that need another one's uid.
fn independent() -> Vec<Value> {
    let namespace = |n| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("shadow-{n}")}});
    let replica_set = |n| {
        let name = format!("set-{n}");
        set("apps/v1", "ReplicaSet", &name, &json!({"matchLabels": {"app": name}}))
    };
    let controller = |n| {
        let name = format!("rc-{n}");
        set("v1", "ReplicationController", &name, &json!({"app": name}))
    };
    (0..DEPLOYMENTS)
        .map(|n| deployment(&format!("web-{n}"), 1))
        .chain((0..SETS).map(replica_set))
        .chain((0..CONTROLLERS).map(controller))
        .chain((0..JOBS).map(|n| job(&format!("job-{n}"), 1, 1)))
        .chain((0..CRON_JOBS).map(|n| cron_job(&format!("cron-{n}"))))
        .chain((0..DAEMONS).map(|n| daemon(&format!("daemon-{n}"))))
        .chain((0..SERVICES).map(|n| service(&format!("service-{n}"), &format!("web-{n}"))))
        .chain((0..BUDGETS).map(|n| budget(&format!("web-{n}"), &json!({"minAvailable": 1}))))
        .chain((0..NAMESPACES).map(namespace))
        .chain([quota(), autoscaler(("Deployment", "web-3"), 2, &[cpu(50)])])
        .chain(custom())
        .collect()
}

/// Makes all of them, and waits until kube-controller-manager has done its work.
pub(super) async fn make(scene: &Scene) -> Result<()> {
    let apply = async |object: Value| scene.apply(&object).await.map(drop);
    // Upstream counts when the limit comes, and what comes right after it only minutes later.
    apply(lease()).await?;
    stream::iter(independent()).map(Ok).try_for_each_concurrent(AT_ONCE, apply).await?;
    let owner = scene.fetch::<Deployment>("web-0").await?.uid().unwrap_or_default();
    let owned = (0..OWNED).map(|n| owned(&format!("owned-{n}"), "web-0", &owner));
    stream::iter(owned).map(Ok).try_for_each_concurrent(AT_ONCE, apply).await?;
    scene
        .wait_until("kube-controller-manager has done its work", 3 * DEADLINE, async || {
            let found = [
                count::<Deployment>(scene, "/status/availableReplicas").await?,
                count::<ReplicaSet>(scene, "/status/availableReplicas").await?,
                count::<ReplicationController>(scene, "/status/availableReplicas").await?,
                count::<Job>(scene, "/status/succeeded").await?,
                count::<DaemonSet>(scene, "/status/numberAvailable").await?,
            ];
            ensure!(found == [DEPLOYMENTS, DEPLOYMENTS + SETS, CONTROLLERS, JOBS, DAEMONS], "{found:?}");
            Ok(())
        })
        .await
}

/// How many have a 1 there.
async fn count<K: Namespaced + serde::Serialize>(scene: &Scene, pointer: &str) -> Result<usize> {
    let objects = scene.list::<K>("").await?;
    let objects = objects.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
    Ok(objects.iter().filter(|object| object.pointer(pointer) == Some(&json!(1))).count())
}
