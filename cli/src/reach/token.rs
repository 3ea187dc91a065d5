//! The token by which an operator learns who asks: the kubeconfig's own, or that of a `ServiceAccount`.
//!
//! Left out: client certificates, which operators don't look at, and plugins that want to talk to a person.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{AuthInfo, ExecConfig};
use kube::{Api, Client};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::process::Command;

/// Longer than any question, and the shortest that the apiserver grants.
const SECONDS: i64 = 600;

/// The kubeconfig's own token, if it has one.
pub(crate) async fn of_kubeconfig(auth: &AuthInfo) -> Result<Option<String>> {
    if let Some(token) = &auth.token {
        return Ok(Some(token.expose_secret().to_owned()));
    }
    if let Some(path) = &auth.token_file {
        let token = tokio::fs::read_to_string(path).await.with_context(|| format!("read {path}"))?;
        return Ok(Some(token.trim().to_owned()));
    }
    match &auth.exec {
        Some(exec) => of_plugin(exec).await,
        None => Ok(None),
    }
}

/// Upstream: staging/src/k8s.io/client-go/plugin/pkg/client/auth/exec.
async fn of_plugin(exec: &ExecConfig) -> Result<Option<String>> {
    let program = exec.command.as_deref().context("the kubeconfig's credential plugin has no command")?;
    let version = exec.api_version.as_deref().unwrap_or("client.authentication.k8s.io/v1");
    let info = json!({ "apiVersion": version, "kind": "ExecCredential", "spec": { "interactive": false } });
    let of = |entry: &HashMap<String, String>| Some((entry.get("name")?.clone(), entry.get("value")?.clone()));
    let output = Command::new(program)
        .args(exec.args.iter().flatten())
        .envs(exec.env.iter().flatten().filter_map(of))
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .output()
        .await
        .with_context(|| format!("run the credential plugin {program}"))?;
    ensure!(output.status.success(), "the credential plugin {program} ended with {}", output.status);
    let answer: Value =
        serde_json::from_slice(&output.stdout).with_context(|| format!("read what {program} printed"))?;
    Ok(answer.pointer("/status/token").and_then(Value::as_str).map(str::to_owned))
}

/// A token of this account, by the caller's right to ask for one.
pub(crate) async fn of_account(client: &Client, namespace: &str, name: &str) -> Result<String> {
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(SECONDS), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(kube::Error::Api(status)) if status.code == 404 => bail!(
            "the kubeconfig has no token, and there is no ServiceAccount {namespace}/{name} (kubectl apply -k manifests/viewer)"
        ),
        Err(error) => return Err(error).with_context(|| format!("get a token of ServiceAccount {namespace}/{name}")),
    };
    answer.status.and_then(|status| status.token).context("the apiserver granted a token without one")
}
