//! A thousand objects of every kind that the operators act on, at rest under kube-controller-manager, and what somebody
//! does to a few of them while nobody looks after them.
//!
//! Left out: objects that never come to rest.

use anyhow::{Result, ensure};
use e2e::cluster::kubelet;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ReplicationController};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::autoscaling::{autoscaler, cpu};
use crate::batch::job;
use crate::disruption::budget;
use crate::support::requests::{self, KUBELET_CLIENT, deny_long_ago};
use crate::support::scene::Namespaced;
use crate::support::{DEADLINE, Scene, deployment, template, trust_bundles};

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
/// The annotation of a Node that says how long its kubelet may cache what its pods use.
const TTL: &str = "node.alpha.kubernetes.io/ttl";

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

fn owned(name: &str, kind: &str, owner: &str, uid: &str) -> Value {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    let owner = json!({"apiVersion": api_version, "kind": kind, "name": owner, "uid": uid});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [owner]}})
}

/// A pod that no node is right for, and that a finalizer holds.
fn nowhere() -> Value {
    let mut spec = template("nowhere")["spec"].clone();
    spec["nodeSelector"] = json!({"no-node-has": "this"});
    let metadata = json!({"name": "nowhere", "finalizers": ["e2e.example/hold"]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// A node whose kubelet runs. Without one it would become Unknown just when all else has come to rest.
async fn add_node(nodes: &Api<Node>, name: &str, annotations: &Value, spec: &Value) -> Result<()> {
    let mut node = kubelet(true);
    node["metadata"]["name"] = json!(name);
    node["metadata"]["annotations"] = annotations.clone();
    node["spec"] = spec.clone();
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    Ok(())
}

/// A pod on a node that ends it; both at once, so that nobody has looked at them before.
async fn add_tainted(scene: &Scene, nodes: &Api<Node>) -> Result<()> {
    let taints = json!([{"key": "e2e.example/evict", "effect": "NoExecute"}]);
    add_node(nodes, "tainted", &json!({}), &json!({"taints": taints})).await?;
    let mut spec = template("tainted")["spec"].clone();
    spec["nodeName"] = json!("tainted");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tainted"}, "spec": spec});
    scene.apply(&pod).await.map(drop)
}

/// A bootstrap token with this data.
fn token(id: &str, data: &Value) -> Value {
    let metadata = json!({"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "bootstrap.kubernetes.io/token",
        "stringData": data})
}

/// A Secret that asks for a token of the namespace's default ServiceAccount.
fn account_token(name: &str) -> Value {
    let annotations = json!({"kubernetes.io/service-account.name": "default"});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "annotations": annotations},
        "type": "kubernetes.io/service-account-token"})
}

/// The cluster's information as kubeadm leaves it, but for its signatures.
fn cluster_info() -> Value {
    let metadata = json!({"name": "cluster-info", "namespace": "kube-public"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"kubeconfig": "clusters: []"}})
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
    let owned = (0..OWNED).map(|n| owned(&format!("owned-{n}"), "Deployment", "web-0", &owner));
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

/// Somebody does something to a few objects; gives how the difference that each leads to begins.
pub(super) async fn tamper(scene: &Scene) -> Result<Vec<String>> {
    let mut expected = tamper_with_work(scene).await?;
    expected.extend(tamper_with_the_cluster(scene).await?);
    Ok(expected)
}

/// With what runs, and what goes with it.
async fn tamper_with_work(scene: &Scene) -> Result<Vec<String>> {
    let ns = &scene.namespace;
    let pod = first::<Pod>(scene, "app=set-0").await?;
    scene.patch::<Pod>(&pod, &json!({"metadata": {"labels": {"app": null}}})).await?;
    let slice = first::<EndpointSlice>(scene, "kubernetes.io/service-name=service-5").await?;
    scene.patch::<EndpointSlice>(&slice, &json!({"endpoints": []})).await?;
    let mirror = first::<EndpointSlice>(scene, "kubernetes.io/service-name=custom").await?;
    scene.patch::<EndpointSlice>(&mirror, &json!({"endpoints": []})).await?;
    scene.kubectl("delete endpoints/service-4").await?;
    scene.patch_status::<Deployment>("web-1", &json!({"status": {"updatedReplicas": 0}})).await?;
    scene
        .patch_status::<ReplicationController>("rc-0", &json!({"status": {"readyReplicas": 0, "availableReplicas": 0}}))
        .await?;
    scene.patch_status::<DaemonSet>("daemon-0", &json!({"status": {"numberReady": 0}})).await?;
    let stranger = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "namespace": ns,
        "uid": "7d0f0000-0000-4000-8000-000000000000"});
    scene.patch_status::<CronJob>("cron-0", &json!({"status": {"active": [stranger]}})).await?;
    scene.patch_status::<PodDisruptionBudget>("web-2", &json!({"status": {"currentHealthy": 0}})).await?;
    scene.patch_status::<HorizontalPodAutoscaler>("web-3", &json!({"status": {"currentReplicas": 7}})).await?;
    scene.patch::<Job>("job-0", &json!({"spec": {"ttlSecondsAfterFinished": 0}})).await?;
    scene.apply(&job("made", 1, 1)).await?;
    scene.apply(&owned("left", "ConfigMap", "gone", "7d0f0000-0000-4000-8000-000000000001")).await?;
    scene.kubectl("delete lease/counted").await?;
    Ok(vec![
        format!("replicaset-operator patch pods {ns}/{pod}: metadata.ownerReferences[uid="),
        format!("endpointslice-operator patch endpointslices.discovery.k8s.io {ns}/{slice}: endpoints"),
        format!("endpointslice-mirroring-operator patch endpointslices.discovery.k8s.io {ns}/{mirror}: endpoints"),
        format!("endpoints-operator create endpoints {ns}/service-4: "),
        format!("deployment-operator patch deployments.apps/status {ns}/web-1: status.updatedReplicas: "),
        format!(
            "replicationcontroller-operator patch replicationcontrollers/status {ns}/rc-0: status.availableReplicas: "
        ),
        format!("daemonset-operator patch daemonsets.apps/status {ns}/daemon-0: status.numberReady: "),
        format!("cronjob-operator patch cronjobs.batch/status {ns}/cron-0: status.active"),
        format!("disruption-operator patch poddisruptionbudgets.policy/status {ns}/web-2: status.currentHealthy: "),
        format!(
            "horizontal-pod-autoscaler-operator patch horizontalpodautoscalers.autoscaling/status {ns}/web-3: \
             status.currentReplicas: "
        ),
        format!("ttl-after-finished-operator delete jobs.batch {ns}/job-0: "),
        format!("job-operator create pods {ns}/made-: "),
        format!("garbage-collector-operator delete configmaps {ns}/left: "),
        format!(
            "resourcequota-operator patch resourcequotas/status {ns}/team: \
             status.used[count/leases.coordination.k8s.io]: "
        ),
    ])
}

/// With accounts, namespaces, nodes, roles and certificates.
async fn tamper_with_the_cluster(scene: &Scene) -> Result<Vec<String>> {
    let ns = &scene.namespace;
    scene.cluster.kubectl("--namespace shadow-0 delete serviceaccount/default".split(' ')).await?;
    scene.cluster.kubectl("--namespace shadow-0 delete configmap/kube-root-ca.crt".split(' ')).await?;
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    namespaces.delete("shadow-1", &DeleteParams::background()).await?;
    scene.apply(&nowhere()).await?;
    scene.kubectl("delete pod/nowhere --wait=false").await?;
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let labels = json!({"kubernetes.io/arch": "amd64", "beta.kubernetes.io/arch": "other"});
    let other = Patch::Merge(json!({"metadata": {"annotations": {TTL: "7"}, "labels": labels}}));
    nodes.patch("node-0", &PatchParams::default(), &other).await?;
    add_tainted(scene, &nodes).await?;
    add_node(&nodes, "unassigned", &json!({TTL: "0"}), &json!({})).await?;
    let roles: Api<ClusterRole> = Api::all(scene.client.clone());
    roles.patch("admin", &PatchParams::default(), &Patch::Merge(json!({"rules": []}))).await?;
    scene.apply(&token("oldold", &json!({"expiration": "2020-01-01T00:00:00Z"}))).await?;
    let signing = json!({"token-id": "newnew", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"});
    scene.apply(&token("newnew", &signing)).await?;
    scene.apply(&cluster_info()).await?;
    scene.apply(&account_token("robot")).await?;
    ask_for_certificates(scene).await?;
    scene.apply(&trust_bundles::stranger(scene.cluster.pki()?.ca_pem())).await?;
    let ranges: Api<ServiceCIDR> = Api::all(scene.client.clone());
    let unprotected = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    ranges.patch("kubernetes", &PatchParams::default(), &unprotected).await?;
    Ok(vec![
        "serviceaccount-operator create serviceaccounts shadow-0/default: ".to_owned(),
        "root-ca-certificate-publisher-operator create configmaps shadow-0/kube-root-ca.crt: ".to_owned(),
        "namespace-operator deletecollection ".to_owned(),
        format!("pod-garbage-collector-operator patch pods/status {ns}/nowhere: status."),
        format!("taint-eviction-operator patch pods/status {ns}/tainted: status.conditions"),
        format!("ttl-operator patch nodes node-0: metadata.annotations[{TTL}]: "),
        "bootstrap-signer-operator patch configmaps kube-public/cluster-info: data.jws-kubeconfig-newnew: ".to_owned(),
        "token-cleaner-operator delete secrets kube-system/bootstrap-token-oldold: ".to_owned(),
        format!("serviceaccount-token-operator patch secrets {ns}/robot: data[ca.crt]: "),
        "node-ipam-operator patch nodes unassigned: spec.podCIDR: ".to_owned(),
        "node-lifecycle-operator patch nodes node-0: metadata.labels[beta.kubernetes.io/arch]: ".to_owned(),
        "clusterrole-aggregation-operator patch clusterroles.rbac.authorization.k8s.io admin: rules: ".to_owned(),
        "certificatesigningrequest-approving-operator patch certificatesigningrequests.certificates.k8s.io/approval \
         e2e-new: status.conditions"
            .to_owned(),
        "certificatesigningrequest-signing-operator patch certificatesigningrequests.certificates.k8s.io/status \
         e2e-approved: status.certificate: "
            .to_owned(),
        "certificatesigningrequest-cleaner-operator delete certificatesigningrequests.certificates.k8s.io e2e-old: "
            .to_owned(),
        format!(
            "{} delete clustertrustbundles.certificates.k8s.io {}: ",
            trust_bundles::OPERATOR,
            trust_bundles::STRANGER
        ),
        "service-cidr-operator patch servicecidrs.networking.k8s.io kubernetes: metadata.finalizers".to_owned(),
    ])
}

/// One request was denied long ago, one is new, and one was approved.
async fn ask_for_certificates(scene: &Scene) -> Result<()> {
    deny_long_ago(scene, "e2e-old").await?;
    scene.apply(&requests::request("e2e-new", KUBELET_CLIENT, "system:node:new", "system:nodes")?).await?;
    scene.apply(&requests::request("e2e-approved", requests::CLIENT, "somebody", "somewhere")?).await?;
    requests::approve(scene, "e2e-approved").await
}

async fn first<K: Namespaced>(scene: &Scene, selector: &str) -> Result<String> {
    let found = scene.list::<K>(selector).await?;
    ensure!(!found.is_empty(), "nothing has {selector}");
    Ok(found[0].name_any())
}
