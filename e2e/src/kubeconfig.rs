//! Writes kubeconfigs (as JSON, which is YAML) and makes clients from them.
//! Left out: editing kubeconfigs that others own.

use std::path::Path;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::pki::Identity;

/// How a client proves who it is.
pub enum Credentials<'a> {
    Certificate(&'a Identity),
    Token(&'a str),
}

/// Writes a kubeconfig with one cluster, one user and one context.
pub fn write(path: &Path, server: &str, ca_pem: &str, credentials: &Credentials<'_>) -> Result<()> {
    let user = match credentials {
        Credentials::Certificate(identity) => json!({
            "client-certificate-data": base64(&identity.certificate),
            "client-key-data": base64(&identity.key),
        }),
        Credentials::Token(token) => json!({ "token": token }),
    };
    let config = document(&json!({ "server": server, "certificate-authority-data": base64(ca_pem) }), &user);
    let text = serde_json::to_string_pretty(&config).context("write a kubeconfig as JSON")?;
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

fn document(cluster: &Value, user: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "e2e", "cluster": cluster }],
        "users": [{ "name": "e2e", "user": user }],
        "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": "e2e" } }],
        "current-context": "e2e",
    })
}

/// The configuration of our own clients from a kubeconfig: a request that fails is not silently sent again.
pub async fn config(path: &Path) -> Result<kube::Config> {
    let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("read kubeconfig {}", path.display()))?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("use kubeconfig {}", path.display()))?;
    config.default_retry = false;
    Ok(config)
}

/// A client for the kubeconfig at `path`. It belongs to the current runtime.
pub async fn client(path: &Path) -> Result<kube::Client> {
    kube::Client::try_from(config(path).await?).with_context(|| format!("make a client for {}", path.display()))
}

fn base64(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}
