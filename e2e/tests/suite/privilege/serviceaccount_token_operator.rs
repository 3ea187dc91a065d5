//! A Secret gets a token by which the apiserver knows its account; the account's list loses it with the Secret, and
//! another Secret goes with the account.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

const ACCOUNT: &str = "bearer";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let (accounts, secrets) = (scene.api::<ServiceAccount>(), scene.api::<Secret>());
    scene.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})).await?;
    scene.apply(&token("first")).await?;
    is_good(scene, &filled(scene, "first").await?).await?;
    // A token that is listed may be taken for one that nobody uses, and be refused.
    let listed = json!({"secrets": [{"name": "first"}, {"name": "other"}]});
    scene.patch::<ServiceAccount>(ACCOUNT, &listed).await?;
    secrets.delete("first", &DeleteParams::default()).await.context("delete the first token")?;
    scene
        .wait_until("the account's list has lost it", DEADLINE, async || {
            let listed = scene.fetch::<ServiceAccount>(ACCOUNT).await?.secrets.unwrap_or_default();
            let names: Vec<String> = listed.into_iter().filter_map(|reference| reference.name).collect();
            ensure!(names == ["other"], "{names:?}");
            Ok(())
        })
        .await?;
    scene.apply(&token("second")).await?;
    filled(scene, "second").await?;
    accounts.delete(ACCOUNT, &DeleteParams::default()).await.context("delete the account")?;
    scene.gone::<Secret>("second").await
}

fn token(name: &str) -> Value {
    let metadata = json!({"name": name, "annotations": {"kubernetes.io/service-account.name": ACCOUNT}});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/service-account-token"})
}

/// The token, once the Secret has all that it needs.
async fn filled(scene: &Scene, name: &str) -> Result<String> {
    scene
        .wait_until(&format!("{name} is filled in"), DEADLINE, async || {
            let secret: Secret = scene.fetch(name).await?;
            ensure!(secret.annotations().contains_key("kubernetes.io/service-account.uid"), "it has no uid");
            let data = secret.data.unwrap_or_default();
            let value = |key: &str| data.get(key).map(|value| String::from_utf8_lossy(&value.0).into_owned());
            ensure!(value("namespace").as_ref() == Some(&scene.namespace), "{:?}", value("namespace"));
            ensure!(value("ca.crt").is_some_and(|ca| ca.contains("BEGIN CERTIFICATE")), "it has no CA");
            value("token").context("it has no token")
        })
        .await
}

/// The apiserver takes the token for one of the account.
async fn is_good(scene: &Scene, token: &str) -> Result<()> {
    let reviews: Api<TokenReview> = Api::all(scene.client.clone());
    let asked: TokenReview = serde_json::from_value(json!({"metadata": {}, "spec": {"token": token}}))?;
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", scene.namespace);
    scene
        .wait_until("the apiserver knows the token", DEADLINE, async || {
            let status = reviews.create(&PostParams::default(), &asked).await?.status.unwrap_or_default();
            let found = status.user.and_then(|user| user.username).unwrap_or_default();
            ensure!(found == user, "{found:?}: {:?}", status.error);
            Ok(())
        })
        .await
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    let annotations = json!({"kubernetes.io/service-account.name": "default"});
    let metadata = json!({"name": "robot", "annotations": annotations});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
        "type": "kubernetes.io/service-account-token"});
    scene.apply(&secret).await?;
    Ok(format!("patch secrets {}/robot: data[ca.crt]: ", scene.namespace))
}
