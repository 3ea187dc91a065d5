//! Objects that were deleted and do not go, and objects with an owner that is none.
//!
//! Left out: finalizers that other projects' controllers take away, but for one.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::cluster::ClusterOptions;
use futures::FutureExt;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::workloads::of;
use super::{Row, play, play_family, row, session, with};
use crate::support::{DEADLINE, Scene, deployment, start_operators, template, with_cluster};

const HOLD: &str = "e2e.example/hold";

#[test]
fn what_does_not_go_says_who_holds_it() -> Result<()> {
    play_family(&on_whole_cluster())
}

/// No namespace of its cluster can end.
#[test]
fn a_namespace_whose_content_is_not_known_says_which_api_does_not_answer() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let operators = start_operators(&scene.cluster, ["namespace-operator"]).await?;
        let session = session(scene, operators.iter().map(|operator| (operator.name(), operator.port()))).await?;
        play(scene, &session, &[undiscovered()]).await
    })
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = on_whole_cluster();
    rows.push(undiscovered());
    rows
}

fn on_whole_cluster() -> Vec<Row> {
    [finalizers(), namespaces(), pods(), owners()].into_iter().flatten().collect()
}

fn undiscovered() -> Row {
    row(
        "An aggregated API does not answer",
        "ns/*",
        "*: deleted, but its content is unknown because APIService v1.down.example does not answer (NamespaceDeletionDiscoveryFailure): …",
        |scene| {
            async move {
                let service = json!({"name": "nobody", "namespace": "default"});
                let spec = json!({"group": "down.example", "version": "v1", "groupPriorityMinimum": 100,
                    "versionPriority": 100, "service": service, "insecureSkipTLSVerify": true});
                let down = of("apiregistration.k8s.io/v1", "APIService", "v1.down.example", &json!({"spec": spec}));
                apply(&scene.client, "", &down).await?;
                scene.delete_namespace().await
            }
            .boxed_local()
        },
    )
}

fn finalizers() -> Vec<Row> {
    vec![
        row(
            "A finalizer is not removed",
            "cm/web",
            "web: deleted * s ago; waiting for finalizer `e2e.example/hold`, removed by whoever put it there (e2e.example)",
            |scene| deleted(scene, HOLD).boxed_local(),
        ),
        row(
            "A finalizer of a known project is not removed",
            "cm/web",
            "web: deleted * s ago; waiting for finalizer `resources-finalizer.argocd.argoproj.io/background`, removed by Argo CD",
            |scene| deleted(scene, "resources-finalizer.argocd.argoproj.io/background").boxed_local(),
        ),
        row(
            "A foreground deletion waits for a dependent",
            "deployment/web",
            "web: deleted * s ago in the foreground; waiting for 1 dependent: replicaset/web-*, held by finalizer `e2e.example/hold`, removed by whoever put it there (e2e.example)",
            |scene| blocked(scene).boxed_local(),
        ),
        row(
            "A foreground deletion waits for a dependent's dependent",
            "deployment/web",
            "web: deleted * s ago in the foreground; waiting for 1 dependent: replicaset/web-*; pod/web-* is held by finalizer `e2e.example/hold`, removed by whoever put it there (e2e.example)",
            |scene| blocked_below(scene).boxed_local(),
        ),
        row(
            "A pod uses a claim that is being deleted",
            "pvc/data",
            "data: deleted * s ago; waiting for finalizer `kubernetes.io/pvc-protection`, removed by persistentvolumeclaim-protection-operator (once no pod uses the claim)",
            |scene| used(scene).boxed_local(),
        ),
        row(
            "A pod uses a ResourceClaim that is being deleted",
            "resourceclaim/gpu",
            "gpu: deleted * s ago; waiting for finalizer `resource.kubernetes.io/delete-protection`, removed by resourceclaim-operator (once no pod uses the claim)",
            |scene| reserved(scene).boxed_local(),
        ),
    ]
}

fn namespaces() -> Vec<Row> {
    vec![
        row(
            "A namespace's content is not removed",
            "ns/*",
            "*: deleted * s ago; not empty: configmaps has 1 resource instances; finalizers: e2e.example/hold in 1 resource instances; `e2e.example/hold` is removed by whoever put it there (e2e.example)",
            |scene| {
                async move {
                    scene.apply(&held("ConfigMap", HOLD)).await?;
                    scene.delete_namespace().await
                }
                .boxed_local()
            },
        ),
        row(
            "An empty namespace has a finalizer",
            "ns/*",
            "*: deleted * s ago; waiting for finalizer `e2e.example/hold`, removed by whoever put it there (e2e.example)",
            |scene| held_namespace(scene).boxed_local(),
        ),
    ]
}

fn pods() -> Vec<Row> {
    vec![
        row(
            "A pod is terminating",
            "pod/web",
            "web: deleted; its containers on node node-* are terminating (deadline in * min)",
            |scene| staying(scene, 3600).boxed_local(),
        ),
        row(
            "A pod's node does not remove it",
            "pod/web",
            "web: deleted * s ago; past its grace period, but node node-* has not removed it",
            |scene| staying(scene, 1).boxed_local(),
        ),
    ]
}

fn owners() -> Vec<Row> {
    vec![
        row(
            "The owner is in another namespace",
            "cm/web",
            "web: owner configmap/owner does not exist in its namespace; it will be garbage-collected: …",
            |scene| {
                async move {
                    let there = scene.beside("there").await?;
                    let owner = there.apply(&of("v1", "ConfigMap", "owner", &json!({}))).await?;
                    kept(scene, &owner.uid().context("no uid")?).await
                }
                .boxed_local()
            },
        ),
        row(
            "The owner is gone, and the deletion is denied",
            "cm/web",
            "web: garbage-collector-operator failed * times in a row, next retry in * s: denied by policy `*`: nothing is deleted here",
            |scene| kept(scene, "00000000-0000-0000-0000-000000000001").boxed_local(),
        ),
    ]
}

/// An object with this finalizer.
fn held(kind: &str, finalizer: &str) -> Value {
    of("v1", kind, "web", &json!({"metadata": {"finalizers": [finalizer]}}))
}

async fn deleted(scene: &Scene, finalizer: &str) -> Result<()> {
    scene.apply(&held("ConfigMap", finalizer)).await?;
    scene.kubectl("delete configmap/web --wait=false").await.map(drop)
}

/// The pod has its node from the start: a scheduler would wait for a volume.
async fn used(scene: &Scene) -> Result<()> {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "e2e-none"});
    scene.apply(&of("v1", "PersistentVolumeClaim", "data", &json!({"spec": spec}))).await?;
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}});
    pod["spec"] = template("web")["spec"].clone();
    pod["spec"]["nodeName"] = json!("node-0");
    pod["spec"]["volumes"] = json!([volume]);
    scene.apply(&pod).await?;
    scene.kubectl("delete pvc/data --wait=false").await.map(drop)
}

/// The claim is allocated as by a scheduler. The pod has its node from the start, so an operator reserves the claim.
async fn reserved(scene: &Scene) -> Result<()> {
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "e2e.example"}});
    let fields = json!({"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]},
        "spec": {"devices": {"requests": [request]}}});
    scene.apply(&of("resource.k8s.io/v1", "ResourceClaim", "gpu", &fields)).await?;
    scene.patch_status::<ResourceClaim>("gpu", &json!({"status": {"allocation": {"devices": {}}}})).await?;
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}});
    pod["spec"] = template("web")["spec"].clone();
    pod["spec"]["nodeName"] = json!("node-0");
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
    scene.apply(&pod).await?;
    scene
        .wait_until("the claim is reserved for the pod", DEADLINE, async || {
            let users = scene.fetch::<ResourceClaim>("gpu").await?.status.and_then(|status| status.reserved_for);
            ensure!(users.is_some_and(|users| !users.is_empty()), "it is reserved for nobody");
            Ok(())
        })
        .await?;
    scene.kubectl("delete resourceclaim/gpu --wait=false").await.map(drop)
}

async fn blocked(scene: &Scene) -> Result<()> {
    scene.apply(&deployment("web", 1)).await?;
    scene.rolled_out("web").await?;
    let set = scene.list::<ReplicaSet>("app=web").await?.pop().context("no ReplicaSet")?.name_any();
    scene.patch::<ReplicaSet>(&set, &json!({"metadata": {"finalizers": [HOLD]}})).await?;
    scene.kubectl("delete deployment/web --cascade=foreground --wait=false").await.map(drop)
}

/// As [`blocked`], where a pod is held, so that the ReplicaSet's own deletion in the foreground waits.
async fn blocked_below(scene: &Scene) -> Result<()> {
    scene.apply(&deployment("web", 1)).await?;
    scene.rolled_out("web").await?;
    let pod = scene.list::<Pod>("app=web").await?.pop().context("no pod")?.name_any();
    scene.patch::<Pod>(&pod, &json!({"metadata": {"finalizers": [HOLD]}})).await?;
    scene.kubectl("delete deployment/web --cascade=foreground --wait=false").await.map(drop)
}

async fn held_namespace(scene: &Scene) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": [HOLD]}}));
    namespaces.patch(&scene.namespace, &PatchParams::default(), &patch).await.context("hold the namespace")?;
    scene.delete_namespace().await
}

/// A pod that was deleted, and that kwok leaves alone.
async fn staying(scene: &Scene, grace: i32) -> Result<()> {
    let metadata = json!({"annotations": {"pods.e2e/becomes": "running", "pods.e2e/goes": "never"}});
    let pod = with(template("web"), &json!({"metadata": metadata, "spec": {"terminationGracePeriodSeconds": grace}}));
    scene.apply(&of("v1", "Pod", "web", &pod)).await?;
    scene
        .wait_until("the pod runs", DEADLINE, async || {
            let status = scene.fetch::<Pod>("web").await?.status.unwrap_or_default();
            ensure!(status.phase.as_deref() == Some("Running"), "{status:?}");
            Ok(())
        })
        .await?;
    scene.kubectl("delete pod/web --wait=false").await.map(drop)
}

/// A ConfigMap of this owner, in a namespace in which a policy forbids to delete any.
async fn kept(scene: &Scene, owner: &str) -> Result<()> {
    let (version, name) = ("admissionregistration.k8s.io/v1", &scene.namespace);
    scene.apply(&of("v1", "ConfigMap", "web", &json!({}))).await?;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]});
    let own = json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
    let policy = json!({
        "matchConstraints": {"namespaceSelector": own, "resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "nothing is deleted here"}],
    });
    scene.apply(&of(version, "ValidatingAdmissionPolicy", name, &json!({"spec": policy}))).await?;
    let binding = json!({"spec": {"policyName": name, "validationActions": ["Deny"]}});
    scene.apply(&of(version, "ValidatingAdmissionPolicyBinding", name, &binding)).await?;
    let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
    scene
        .wait_until("nothing is deleted here", DEADLINE, async || {
            ensure!(scene.api::<ConfigMap>().delete("web", &dry_run).await.is_err(), "it would be deleted");
            Ok(())
        })
        .await?;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner});
    scene.patch::<ConfigMap>("web", &json!({"metadata": {"ownerReferences": [reference]}})).await.map(drop)
}
