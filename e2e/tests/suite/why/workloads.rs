//! Controllers that keep pods, and do not have those that they should have.
//!
//! Left out: pods that are there and are not ready, which are a family of their own.

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::{Row, becoming, play_family, row, web, with};
use crate::support::{DEADLINE, Scene, deployment, template, webhook};

pub(super) fn rows() -> Vec<Row> {
    let [quotas, admission, absence, own] = [quotas(), admission(), absence(), own()];
    quotas.into_iter().chain(admission).chain(absence).chain(own).collect()
}

#[test]
fn workloads_say_why_pods_are_missing() -> Result<()> {
    play_family(&rows())
}

fn quotas() -> Vec<Row> {
    vec![
        row(
            "A quota is exhausted",
            "deployment/web",
            "web: 2 of 3 pods missing: ReplicaSet web-* cannot create pods: quota `team` exceeded (pods 1/1); next retry in * s",
            |scene| {
                async move {
                    scene.limit_pods("team", 1).await?;
                    scene.apply(&deployment("web", 3)).await.map(drop)
                }
                .boxed_local()
            },
        ),
        row(
            "A quota is exhausted (ReplicationController)",
            "rc/web",
            "web: 2 of 3 pods missing: ReplicationController web cannot create pods: quota `team` exceeded (pods 1/1); next retry in * s",
            |scene| {
                async move {
                    scene.limit_pods("team", 1).await?;
                    scene.apply(&replication_controller(3)).await.map(drop)
                }
                .boxed_local()
            },
        ),
        row(
            "A quota requires a field that the pods lack",
            "deployment/web",
            "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: quota `team` requires pods to specify limits.cpu…; next retry in * s",
            |scene| {
                async move {
                    let hard = json!({"limits.cpu": "1"});
                    scene.apply(&of("v1", "ResourceQuota", "team", &json!({"spec": {"hard": hard}}))).await?;
                    let status = json!({"status": {"hard": hard, "used": {"limits.cpu": "0"}}});
                    scene.patch_status::<ResourceQuota>("team", &status).await?;
                    refused(scene, &json!({})).await
                }
                .boxed_local()
            },
        ),
    ]
}

fn admission() -> Vec<Row> {
    let policy = "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: denied by policy `*`: every pod needs a team; next retry in * s";
    let limit = "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: denied by a LimitRange: maximum cpu usage per Container is 1, but limit is 2; next retry in * s";
    let security = "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: denied by Pod Security `restricted:latest`: …; next retry in * s";
    vec![
        row(
            "A webhook does not answer",
            "deployment/web",
            "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: webhook `dead.e2e.example` does not answer: …; next retry in * s",
            |scene| {
                async move { asks_webhook(scene, "dead.e2e.example", &json!({"url": "https://127.0.0.1:1/"})).await }
                    .boxed_local()
            },
        ),
        row(
            "A webhook denies the pods",
            "deployment/web",
            "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: denied by webhook `strict.e2e.example`: no pods on Sundays; next retry in * s",
            |scene| {
                async move {
                    let config = webhook::refusing(&scene.cluster, "no pods on Sundays").await?;
                    asks_webhook(scene, "strict.e2e.example", &config).await
                }
                .boxed_local()
            },
        ),
        row("An admission policy denies the pods", "deployment/web", policy, |scene| {
            denying_policy(scene).boxed_local()
        }),
        row("Pod Security denies the pods", "deployment/web", security, |scene| {
            async move {
                let label = "pod-security.kubernetes.io/enforce=restricted";
                scene.kubectl(&format!("label namespace {} {label}", scene.namespace)).await?;
                refused(scene, &json!({})).await
            }
            .boxed_local()
        }),
        row("A LimitRange denies the pods", "deployment/web", limit, |scene| {
            async move {
                let limits = json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}});
                scene.apply(&of("v1", "LimitRange", "small", &limits)).await?;
                let resources = json!({"limits": {"cpu": "2"}});
                let container =
                    with(template("web")["spec"]["containers"][0].clone(), &json!({"resources": resources}));
                refused(scene, &json!({"spec": {"containers": [container]}})).await
            }
            .boxed_local()
        }),
    ]
}

fn absence() -> Vec<Row> {
    vec![
        row(
            "Its ServiceAccount does not exist",
            "deployment/web",
            "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: ServiceAccount `robot` not found; next retry in * s",
            |scene| {
                async move { refused(scene, &json!({"spec": {"serviceAccountName": "robot"}})).await }.boxed_local()
            },
        ),
        row(
            "Its PriorityClass does not exist",
            "deployment/web",
            "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: PriorityClass `high` not found; next retry in * s",
            |scene| async move { refused(scene, &json!({"spec": {"priorityClassName": "high"}})).await }.boxed_local(),
        ),
        row(
            "Its RuntimeClass does not exist",
            "deployment/web",
            "web: 1 of 1 pod missing: ReplicaSet web-* cannot create pods: RuntimeClass `sandboxed` not found; next retry in * s",
            |scene| {
                async move { refused(scene, &json!({"spec": {"runtimeClassName": "sandboxed"}})).await }.boxed_local()
            },
        ),
        row(
            "The object does not exist",
            "deployment/wbe",
            "wbe: Deployment not found in namespace *; did you mean web?",
            |scene| async move { scene.apply(&deployment("web", 0)).await.map(drop) }.boxed_local(),
        ),
    ]
}

fn own() -> Vec<Row> {
    vec![
        row(
            "Two Deployments select the same pods",
            "deployment/web",
            "web: selector overlaps with deployment/other",
            |scene| clash(scene).boxed_local(),
        ),
        row("A rollout is paused", "deployment/web", "web: rollout paused: 0 of 2 pods updated", |scene| {
            paused(scene).boxed_local()
        }),
        row("It is scaled to zero", "deployment/web", "web: scaled to zero (replicas: 0)", |scene| {
            async move { scene.apply(&deployment("web", 0)).await.map(drop) }.boxed_local()
        }),
        row(
            "It is scaled to zero and has an autoscaler",
            "deployment/web",
            "web: scaled to zero (replicas: 0); horizontalpodautoscaler/web does not scale up from zero",
            |scene| autoscaled(scene).boxed_local(),
        ),
        row(
            "Its pods have not been ready for minReadySeconds",
            "deployment/web",
            "web: 2 of 2 pods ready, but for less than 3600 s (minReadySeconds); the next one becomes available in * min",
            |scene| {
                let slow = with(
                    deployment("web", 2),
                    &json!({"spec": {"minReadySeconds": 3600, "progressDeadlineSeconds": 7200}}),
                );
                async move { scene.apply(&slow).await.map(drop) }.boxed_local()
            },
        ),
        row(
            "A rollout is past its progress deadline",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: cannot pull image `registry.k8s.io/pause:3.10` (ImagePullBackOff) (progress deadline exceeded)",
            |scene| {
                let late = with(
                    web(1, &json!({"metadata": becoming("never-started")})),
                    &json!({"spec": {"progressDeadlineSeconds": 1}}),
                );
                async move { scene.apply(&late).await.map(drop) }.boxed_local()
            },
        ),
        row(
            "A Recreate waits for an old pod with a finalizer",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: being deleted, but held by finalizer e2e.example/hold",
            |scene| recreated(scene, &["e2e.example/hold"]).boxed_local(),
        ),
        row(
            "A Recreate waits for an old pod that is terminating",
            "deployment/web",
            "web: 1 of 1 pod not ready: web-*: its containers are terminating",
            |scene| recreated(scene, &[]).boxed_local(),
        ),
    ]
}

/// An object of any kind.
pub(super) fn of(api_version: &str, kind: &str, name: &str, rest: &Value) -> Value {
    with(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}), rest)
}

fn replication_controller(replicas: i32) -> Value {
    let spec = json!({"replicas": replicas, "selector": {"app": "web"}, "template": template("web")});
    of("v1", "ReplicationController", "web", &json!({"spec": spec}))
}

/// Creates the Deployment once the apiserver refuses pods with this template.
async fn refused(scene: &Scene, changes: &Value) -> Result<()> {
    let probe = with(with(template("web"), changes), &json!({"metadata": {"name": "probe"}}));
    let probe: Pod = serde_json::from_value(probe).context("describe a pod")?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    scene
        .wait_until("such pods are refused", DEADLINE, async || {
            ensure!(scene.api::<Pod>().create(&dry_run, &probe).await.is_err(), "the pod was admitted");
            Ok(())
        })
        .await?;
    scene.apply(&web(1, changes)).await.map(drop)
}

/// Pods of this namespace need the consent of a webhook.
async fn asks_webhook(scene: &Scene, name: &str, config: &Value) -> Result<()> {
    let webhook = json!({
        "name": name,
        "clientConfig": config,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
    });
    let (version, kind) = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
    scene.apply(&of(version, kind, &scene.namespace, &json!({"webhooks": [webhook]}))).await?;
    refused(scene, &json!({})).await
}

async fn denying_policy(scene: &Scene) -> Result<()> {
    let (version, name) = ("admissionregistration.k8s.io/v1", &scene.namespace);
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
    let own = json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
    let policy = json!({
        "matchConstraints": {"namespaceSelector": own, "resourceRules": [rule]},
        "validations": [{"expression": "has(object.metadata.labels) && 'team' in object.metadata.labels", "message": "every pod needs a team"}],
    });
    scene.apply(&of(version, "ValidatingAdmissionPolicy", name, &json!({"spec": policy}))).await?;
    let binding = json!({"spec": {"policyName": name, "validationActions": ["Deny"]}});
    scene.apply(&of(version, "ValidatingAdmissionPolicyBinding", name, &binding)).await?;
    refused(scene, &json!({})).await
}

async fn clash(scene: &Scene) -> Result<()> {
    scene.apply(&deployment("web", 1)).await?;
    scene.apply(&with(deployment("web", 1), &json!({"metadata": {"name": "other"}}))).await?;
    scene.rolled_out("web").await
}

async fn paused(scene: &Scene) -> Result<()> {
    scene.apply(&deployment("web", 2)).await?;
    scene.rolled_out("web").await?;
    let template = json!({"metadata": {"annotations": {"step": "2"}}});
    scene.patch::<Deployment>("web", &json!({"spec": {"paused": true, "template": template}})).await.map(drop)
}

async fn autoscaled(scene: &Scene) -> Result<()> {
    scene.apply(&deployment("web", 0)).await?;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4});
    scene.apply(&of("autoscaling/v2", "HorizontalPodAutoscaler", "web", &json!({"spec": spec}))).await.map(drop)
}

/// A rollout whose old pod its node does not let go.
async fn recreated(scene: &Scene, finalizers: &[&str]) -> Result<()> {
    let strategy = json!({"type": "Recreate", "rollingUpdate": null});
    let staying = json!({"metadata": {"annotations": {"pods.e2e/becomes": "running", "pods.e2e/goes": "never"}}});
    scene.apply(&with(web(1, &staying), &json!({"spec": {"strategy": strategy}}))).await?;
    scene.rolled_out("web").await?;
    let pod = scene.list::<Pod>("app=web").await?.pop().context("no pod")?.name_any();
    scene.patch::<Pod>(&pod, &json!({"metadata": {"finalizers": finalizers}})).await?;
    let template = json!({"metadata": {"annotations": {"step": "2"}}});
    scene.patch::<Deployment>("web", &json!({"spec": {"template": template}})).await.map(drop)
}
