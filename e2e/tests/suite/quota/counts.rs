//! Objects of every kind that quotas count in a way of its own, and quotas with every scope: made before there is a
//! quota, so that all of them are counted, and none is charged.
//! Left out: overhead of pods, which needs a class of a runtime, and resizes, which need a kubelet.

use anyhow::{Result, ensure};
use e2e::apply::apply;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{quota, uses};
use crate::support::{DEADLINE, Scene, deployment, template};

/// Of everything more than there is.
const MUCH: &str = "1T";
/// The limits that nobody has a scope for.
const LIMITS: [&str; 36] = [
    "pods",
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "hugepages-2Mi",
    "requests.hugepages-2Mi",
    "requests.example.com/gpu",
    "requests.deviceclass.resource.kubernetes.io/gpu",
    "services",
    "count/services",
    "services.nodeports",
    "services.loadbalancers",
    "persistentvolumeclaims",
    "count/persistentvolumeclaims",
    "requests.storage",
    "gold.storageclass.storage.k8s.io/requests.storage",
    "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
    "silver.storageclass.storage.k8s.io/persistentvolumeclaims",
    "count/resourceclaims.resource.k8s.io",
    "gpu.deviceclass.resource.k8s.io/devices",
    "configmaps",
    "secrets",
    "count/secrets",
    "replicationcontrollers",
    "resourcequotas",
    "count/deployments.apps",
    "count/replicasets.apps",
    "count/leases.coordination.k8s.io",
    // Nobody counts it.
    "example.com/gpu",
];

/// All that is counted, without a quota.
pub(crate) async fn fill(scene: &Scene) -> Result<()> {
    let ranked = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": rank(scene)}, "value": 1000});
    apply(&scene.client, "", &ranked).await?;
    // Claims of its devices count under the resource's name, too.
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu"}});
    apply(&scene.client, "", &class).await?;
    let objects: Vec<Value> = pods(scene).into_iter().chain(services()).chain(claims()).chain(others()).collect();
    try_join_all(objects.iter().map(|object| scene.apply(object))).await?;
    scene
        .wait_until("the Deployment has its ReplicaSet, and nodes have seen the pods", DEADLINE, async || {
            let sets = scene.list::<ReplicaSet>("").await?.len();
            ensure!(sets == 1, "{sets} ReplicaSets");
            for name in ["best", "ended"] {
                let pod: Pod = scene.fetch(name).await?;
                ensure!(pod.status.is_some_and(|status| status.container_statuses.is_some()), "not {name}");
            }
            Ok(())
        })
        .await?;
    scene.patch_status::<Pod>("ended", &json!({"status": {"phase": "Succeeded"}})).await.map(drop)
}

/// The priority class, which has no namespace.
fn rank(scene: &Scene) -> String {
    format!("{}-rank", scene.namespace)
}

fn pods(scene: &Scene) -> Vec<Value> {
    let pod = |name: &str, resources: Value, fields: Value| {
        let mut pod = template(name);
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(name);
        pod["spec"]["containers"][0]["resources"] = resources;
        for (field, value) in fields.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        pod
    };
    let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
    let plain = json!({
        "requests": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi"},
        "limits": {"cpu": "200m", "memory": "128Mi", "ephemeral-storage": "2Gi"},
    });
    let init = |name: &str, amount: &str| json!({"name": name, "image": "registry.k8s.io/pause:3.10", "resources": cpu(amount)});
    let mut sidecar = init("sidecar", "10m");
    sidecar["restartPolicy"] = json!("Always");
    let inits = json!([sidecar, init("first", "300m")]);
    let special = json!({"requests": {"cpu": "1m"}, "limits": {"example.com/gpu": "2", "hugepages-2Mi": "4Mi"}});
    let term = json!({"topologyKey": "kubernetes.io/hostname", "namespaceSelector": {}});
    let near = json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "podAffinityTerm": term}]}});
    let whole = json!({"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}});
    let mut ended = pod("ended", cpu("7"), json!({"restartPolicy": "Never"}));
    ended["metadata"]["annotations"] = json!({"pods.e2e/becomes": "never-started"});
    vec![
        pod("plain", plain, json!({})),
        pod("best", json!({}), json!({})),
        pod("short", cpu("50m"), json!({"activeDeadlineSeconds": 3600, "initContainers": inits})),
        pod("special", special, json!({})),
        pod("ranked", cpu("20m"), json!({"priorityClassName": rank(scene)})),
        pod("near", cpu("30m"), json!({"affinity": near})),
        pod("whole", cpu("40m"), json!({"resources": whole})),
        ended,
    ]
}

fn services() -> Vec<Value> {
    let service = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("counted-{name}")}, "spec": spec});
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let balanced = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": ports});
    vec![
        service("open", json!({"type": "NodePort", "ports": ports})),
        service("balanced", balanced),
        service("inner", json!({"ports": ports})),
        service("outer", json!({"type": "ExternalName", "externalName": "e2e.example"})),
    ]
}

fn claims() -> Vec<Value> {
    let claim = |name: &str, storage: &str, fields: Value| {
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            claim["spec"][field] = value.clone();
        }
        claim
    };
    let mut silver = claim("silver", "1500m", json!({}));
    silver["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "silver"});
    let of = |name: &str, fields: Value| {
        let mut request = json!({"name": name, "deviceClassName": "gpu"});
        for (field, value) in fields.as_object().into_iter().flatten() {
            request[field] = value.clone();
        }
        request
    };
    let either = json!([of("few", json!({"count": 2})), of("all", json!({"allocationMode": "All"}))]);
    let exactly = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3});
    let requests = json!([{"name": "some", "exactly": exactly}, {"name": "either", "firstAvailable": either}]);
    vec![
        claim("gold", "1Gi", json!({"storageClassName": "gold", "volumeAttributesClassName": "fast"})),
        claim("any", "1.5Gi", json!({"storageClassName": "none"})),
        silver,
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "devices"},
            "spec": {"devices": {"requests": requests}}}),
    ]
}

fn others() -> Vec<Value> {
    let named = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "counted"}});
    let mut controller = named("v1", "ReplicationController");
    controller["spec"] = json!({"replicas": 0, "selector": {"app": "none"}, "template": template("none")});
    vec![
        named("v1", "ConfigMap"),
        named("v1", "Secret"),
        named("coordination.k8s.io/v1", "Lease"),
        controller,
        deployment("counted", 0),
    ]
}

/// Every quota: of all there is, and by each scope.
pub(crate) async fn limit(scene: &Scene) -> Result<()> {
    let hard = |names: &[&str]| -> Value { names.iter().map(|name| ((*name).to_owned(), json!(MUCH))).collect() };
    let scoped = |name: &str, scopes: &[&str], names: &[&str]| {
        let mut quota = quota(name, &hard(names));
        quota["spec"]["scopes"] = json!(scopes);
        quota
    };
    let selecting = |name: &str, (scope, operator): (&str, &str), values: &[&str], names: &[&str]| {
        let mut quota = quota(name, &hard(names));
        let expression = json!({"scopeName": scope, "operator": operator, "values": values});
        quota["spec"]["scopeSelector"] = json!({"matchExpressions": [expression]});
        quota
    };
    let (pods, ranked) = (["pods", "cpu", "limits.cpu"], rank(scene));
    let claims = ["persistentvolumeclaims", "requests.storage"];
    let quotas = [
        scoped("terminating", &["Terminating"], &pods),
        scoped("lasting", &["NotTerminating"], &pods),
        scoped("best", &["BestEffort"], &["pods"]),
        scoped("better", &["NotBestEffort"], &pods),
        scoped("both", &["Terminating", "NotBestEffort"], &pods),
        selecting("ranked", ("PriorityClass", "In"), &[ranked.as_str()], &pods),
        selecting("unranked", ("PriorityClass", "NotIn"), &[ranked.as_str()], &pods),
        selecting("some-rank", ("PriorityClass", "Exists"), &[], &pods),
        selecting("no-rank", ("PriorityClass", "DoesNotExist"), &[], &pods),
        selecting("near", ("CrossNamespacePodAffinity", "Exists"), &[], &["pods"]),
        selecting("fast", ("VolumeAttributesClass", "In"), &["fast"], &claims),
        selecting("slow", ("VolumeAttributesClass", "DoesNotExist"), &[], &claims),
    ];
    try_join_all(quotas.iter().map(|quota| scene.apply(quota))).await?;
    // Upstream would not count those that came between its count and its write.
    scene.apply(&quota("all", &hard(&LIMITS))).await?;
    let expected = [
        (
            "all",
            json!({"pods": "7", "count/pods": "8", "services": "4", "services.nodeports": "2",
            "gpu.deviceclass.resource.k8s.io/devices": "35", "requests.example.com/gpu": "37", "resourcequotas": "13",
            "requests.deviceclass.resource.kubernetes.io/gpu": "35",
            "gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "count/replicasets.apps": "1"}),
        ),
        ("terminating", json!({"pods": "1", "cpu": "310m"})),
        ("lasting", json!({"pods": "6"})),
        ("best", json!({"pods": "1"})),
        ("better", json!({"pods": "6"})),
        ("both", json!({"pods": "1"})),
        ("ranked", json!({"pods": "1", "cpu": "20m"})),
        ("unranked", json!({"pods": "6"})),
        ("some-rank", json!({"pods": "1"})),
        ("no-rank", json!({"pods": "6"})),
        ("near", json!({"pods": "1"})),
        ("fast", json!({"persistentvolumeclaims": "1", "requests.storage": "1Gi"})),
        ("slow", json!({"persistentvolumeclaims": "2"})),
    ];
    try_join_all(expected.iter().map(|(name, used)| uses(scene, name, used))).await.map(drop)
}

/// Everybody's limits go, and come back.
pub(crate) async fn limit_anew(scene: &Scene) -> Result<()> {
    for quota in scene.list::<ResourceQuota>("").await? {
        scene.kubectl(&format!("delete resourcequota/{}", quota.name_any())).await?;
    }
    limit(scene).await
}
