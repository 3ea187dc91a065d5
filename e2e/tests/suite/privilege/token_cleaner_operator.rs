//! A bootstrap token goes when it expires, and one that never does stays.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use shared::transport::clock::Clock;

use crate::support::{DEADLINE, Scene};

const GOES: &str = "bootstrap-token-e2ego0";
const STAYS: &str = "bootstrap-token-e2est0";

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(scene.client.clone(), "kube-system");
    let expires = Clock::system().now() + Duration::from_secs(2);
    scene.apply(&token(STAYS, &json!({}))).await?;
    scene.apply(&token(GOES, &json!({"expiration": expires.to_string()}))).await?;
    scene
        .wait_until("the token that expires is gone", DEADLINE, async || {
            ensure!(secrets.get_opt(GOES).await?.is_none(), "it is still there");
            Ok(())
        })
        .await?;
    secrets.delete(STAYS, &DeleteParams::default()).await.map(drop).context("delete the token that stays")
}

fn token(name: &str, data: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": "kube-system"});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "bootstrap.kubernetes.io/token",
        "stringData": data})
}

pub(super) async fn tamper(scene: &Scene) -> Result<String> {
    scene.apply(&token("bootstrap-token-oldold", &json!({"expiration": "2020-01-01T00:00:00Z"}))).await?;
    Ok("delete secrets kube-system/bootstrap-token-oldold: ".to_owned())
}
