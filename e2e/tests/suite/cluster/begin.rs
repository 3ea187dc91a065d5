//! A new namespace gets its ServiceAccount, and the CA that its pods verify the apiserver by.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::Api;
use serde_json::json;

use super::tree::HOLD;
use crate::support::{DEADLINE, Scene, on_shared_cluster, uid};

const CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";

/// A namespace in which nobody but the operators has created anything.
async fn begun(scene: &Scene) -> Result<Scene> {
    let namespace = format!("{}-new", scene.namespace);
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    apply(&scene.client, "", &object).await?;
    Ok(Scene { cluster: scene.cluster.clone(), client: scene.client.clone(), namespace })
}

async fn account(scene: &Scene) -> Result<ServiceAccount> {
    scene.wait_until("there is a ServiceAccount", DEADLINE, async || scene.fetch("default").await).await
}

/// The ConfigMap, once it publishes this.
async fn published(scene: &Scene, ca: &str) -> Result<ConfigMap> {
    scene
        .wait_until("the CA is published", DEADLINE, async || {
            let published: ConfigMap = scene.fetch(CA).await?;
            let data = published.data.clone().unwrap_or_default();
            ensure!(data.len() == 1 && data.get("ca.crt").is_some_and(|found| found == ca), "{data:?}");
            Ok(published)
        })
        .await
}

/// The CA that all other namespaces have.
async fn ca(scene: &Scene) -> Result<String> {
    let system: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "kube-system");
    let mut data = system.get(CA).await.context("get the CA of kube-system")?.data.unwrap_or_default();
    data.remove("ca.crt").context("no ca.crt in kube-system")
}

#[test]
fn a_new_namespace_gets_its_service_account_and_the_ca_and_gets_them_back() -> Result<()> {
    on_shared_cluster(async |scene| {
        let begun = begun(scene).await?;
        let account_uid = uid(&account(&begun).await?);
        let expected = ca(scene).await?;
        assert!(expected.starts_with("-----BEGIN CERTIFICATE-----"), "{expected}");
        let first = published(&begun, &expected).await?;
        let described = first.metadata.annotations.as_ref().and_then(|annotations| annotations.get(DESCRIPTION));
        assert!(described.is_some_and(|text| text.starts_with("Contains a CA bundle")), "{described:?}");

        begun.kubectl("delete serviceaccount/default").await?;
        begun.kubectl(&format!("delete configmap/{CA}")).await?;
        begun
            .wait_until("both are back", DEADLINE, async || {
                ensure!(uid(&account(&begun).await?) != account_uid, "the same account");
                ensure!(uid(&published(&begun, &expected).await?) != uid(&first), "the same ConfigMap");
                Ok(())
            })
            .await?;

        begun.delete_namespace().await?;
        begun.namespace_gone().await
    })
}

#[test]
fn what_somebody_else_writes_in_place_of_the_ca_does_not_stay() -> Result<()> {
    on_shared_cluster(async |scene| {
        let expected = ca(scene).await?;
        published(scene, &expected).await?;
        // All other fields stay as they are, with each of these faults.
        let wrongs = [
            json!({"data": {"ca.crt": "mine"}}),
            json!({"data": {"more": "x"}}),
            json!({"data": null}),
            json!({"metadata": {"annotations": {DESCRIPTION: null}}}),
        ];
        for (step, mut wrong) in wrongs.into_iter().enumerate() {
            wrong["metadata"]["labels"] = json!({"step": step.to_string()});
            let before = scene.patch::<ConfigMap>(CA, &wrong).await?;
            let after = scene
                .wait_until("it is set right", DEADLINE, async || {
                    let after = published(scene, &expected).await?;
                    let annotations = after.metadata.annotations.clone().unwrap_or_default();
                    ensure!(annotations.contains_key(DESCRIPTION), "{annotations:?}");
                    Ok(after)
                })
                .await?;
            assert_eq!((uid(&after), &after.metadata.labels), (uid(&before), &before.metadata.labels), "{wrong}");
        }
        Ok(())
    })
}

/// Its last pods may have long to end, and what they mount is this ConfigMap.
#[test]
fn a_namespace_that_goes_keeps_the_right_ca_for_as_long_as_it_has_one() -> Result<()> {
    on_shared_cluster(async |scene| {
        let (going, expected) = (scene.beside("going").await?, ca(scene).await?);
        published(&going, &expected).await?;
        going.patch::<ConfigMap>(CA, &json!({"metadata": {"finalizers": [HOLD]}})).await?;
        going.delete_namespace().await?;
        going
            .wait_until("the namespace is emptied", DEADLINE, async || {
                let held: ConfigMap = going.fetch(CA).await?;
                ensure!(held.metadata.deletion_timestamp.is_some(), "nobody deletes the ConfigMap");
                Ok(())
            })
            .await?;
        going.patch::<ConfigMap>(CA, &json!({"data": {"ca.crt": "mine"}})).await?;
        published(&going, &expected).await?;
        going.patch::<ConfigMap>(CA, &json!({"metadata": {"finalizers": null}})).await?;
        going.namespace_gone().await
    })
}
