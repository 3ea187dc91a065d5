//! The end of a namespace: a kind that may not be deleted, answers that get lost, a death in its middle, and another
//! namespace of the same name.

use anyhow::{Context, Result, ensure};
use e2e::proxy::{Action, Rule};
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::super::namespaces::says;
use super::super::tree::{HOLD, config_maps, secrets};
use super::with_behind;
use crate::support::behind::{Behind, Gate};
use crate::support::clusters::metrics_token;
use crate::support::{DEADLINE, Scene};

const OPERATOR: &str = "namespace-operator";

/// Everything of one kind, in a scene's namespace.
fn collection(scene: &Scene, plural: &str) -> String {
    format!("/api/v1/namespaces/{}/{plural}", scene.namespace)
}

#[test]
fn a_kind_that_may_not_be_deleted_keeps_its_namespace_and_nothing_else() -> Result<()> {
    with_behind(OPERATOR, async |scene, behind| {
        let (kept, other) = (scene.beside("kept").await?, scene.beside("other").await?);
        for full in [&kept, &other] {
            full.apply(&config_maps().object("anything", &[])).await?;
            full.apply(&secrets().object("anything", &[])).await?;
        }
        let forbidden = Rule::new(Action::reply(StatusCode::FORBIDDEN)).method(Method::DELETE);
        behind.proxy.add(forbidden.path(&collection(&kept, "secrets")).always());
        kept.delete_namespace().await?;
        other.delete_namespace().await?;
        other.namespace_gone().await?;
        let failed = "Failed to delete all resource types, 1 remaining: Forbidden by the fault proxy";
        says(&kept, "NamespaceDeletionContentFailure", ["True", "ContentDeletionFailed", failed]).await?;
        let (left, emptied) = (kept.list::<Secret>("").await?, kept.list::<ConfigMap>("").await?);
        ensure!(left.len() == 1 && emptied.is_empty(), "{left:?} {emptied:?}");
        behind.proxy.clear();
        kept.namespace_gone().await
    })
}

#[test]
fn a_namespace_goes_whatever_becomes_of_requests_and_of_who_sends_them() -> Result<()> {
    with_behind(OPERATOR, async |scene, mut behind| {
        let (hindered, killed) = (scene.beside("hindered").await?, scene.beside("killed").await?);
        for full in [&hindered, &killed, scene] {
            full.apply(&config_maps().object("anything", &[])).await?;
        }
        let object = format!("/api/v1/namespaces/{}", hindered.namespace);
        for (method, path) in [
            (Method::PUT, format!("{object}/status")),
            (Method::DELETE, collection(&hindered, "configmaps")),
            (Method::PUT, format!("{object}/finalize")),
        ] {
            for action in [Action::reply(StatusCode::CONFLICT), Action::LoseResponse] {
                behind.proxy.add(Rule::new(action).method(method.clone()).path(&path));
            }
        }
        // It dies while nobody knows what has become of the ConfigMaps.
        let gate = Gate::new();
        behind.proxy.add(Rule::new(gate.after()).method(Method::DELETE).path(&collection(&killed, "configmaps")));
        hindered.delete_namespace().await?;
        killed.delete_namespace().await?;
        hindered.namespace_gone().await?;
        gate.reached().await;
        // The namespace is gone before the proxy has noted that the last answer got lost.
        scene
            .wait_until("three answers got lost", DEADLINE, async || {
                let lost = behind.lost(&format!("{object}/**"));
                ensure!(lost == 3, "{lost} answers got lost");
                Ok(())
            })
            .await?;
        behind.kill_and_restart()?;
        killed.namespace_gone().await?;
        let left: ConfigMap = scene.fetch("anything").await?;
        ensure!(left.metadata.deletion_timestamp.is_none(), "a namespace that nobody deletes was emptied");
        Ok(())
    })
}

#[test]
fn a_new_namespace_of_an_old_ones_name_keeps_what_is_in_it() -> Result<()> {
    with_behind(OPERATOR, async |scene, behind| {
        let again = scene.beside("again").await?;
        let mut held = config_maps().object("held", &[]);
        held["metadata"]["finalizers"] = json!([HOLD]);
        again.apply(&held).await?;
        again.delete_namespace().await?;
        let waits = "Some content in the namespace has finalizers remaining: e2e.example/hold in 1 resource instances";
        says(&again, "NamespaceFinalizersRemaining", ["True", "SomeFinalizersRemain", waits]).await?;

        // The operator has seen its end, and will not see its new beginning.
        behind.proxy.freeze_watches("/api/v1/namespaces");
        again.patch::<ConfigMap>("held", &json!({"metadata": {"finalizers": null}})).await?;
        finalize(&again).await?;
        again.namespace_gone().await?;
        let again = scene.beside("again").await?;
        again.apply(&config_maps().object("new", &[])).await?;
        behind.proxy.forget_requests();

        let token = metrics_token(scene).await?;
        let before = rounds(&behind, &token).await?;
        scene
            .wait_until("it has looked again", DEADLINE, async || {
                let now = rounds(&behind, &token).await?;
                ensure!(now > before, "{now} rounds");
                Ok(())
            })
            .await?;
        let path = format!("/api/v1/namespaces/{}", again.namespace);
        let asked = behind.proxy.requests().iter().any(|it| it.path == path && it.status == Some(StatusCode::OK));
        let writes = behind.work();
        ensure!(asked && writes.is_empty(), "asked: {asked}, {writes:?}");
        let kept: ConfigMap = again.fetch("new").await?;
        ensure!(kept.metadata.deletion_timestamp.is_none(), "it is being deleted");
        Ok(())
    })
}

/// Lets an empty namespace go, as anybody may.
async fn finalize(scene: &Scene) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    let mut namespace = namespaces.get(&scene.namespace).await?;
    namespace.spec = None;
    let options = PostParams::default();
    let finalized = namespaces.replace_subresource("finalize", &scene.namespace, &options, &namespace).await;
    finalized.map(drop).context("finalize the namespace")
}

/// How many times it has looked at a namespace.
async fn rounds(behind: &Behind, token: &str) -> Result<f64> {
    let (_, metrics) = behind.operator.get("/metrics", Some(token)).await?;
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("workqueue_work_duration_seconds_count{name=\"namespace\"} "));
    count.context("no such metric")?.parse().context("read the metric")
}
