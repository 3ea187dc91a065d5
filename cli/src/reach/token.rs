//! The token by which an operator knows its client: the kubeconfig's own, or that of a `ServiceAccount`.
//!
//! Left out: client certificates, which operators don't look at, and plugins that want to talk to a person.

use std::collections::HashMap;

use anyhow::{Context, Result, anyhow, bail, ensure};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{AuthInfo, ExecConfig};
use kube::{Api, Client};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::Mutex;

/// Longer than any question, and the shortest that the apiserver grants.
const SECONDS: i64 = 600;
/// So long no other token is asked for, also after a refusal: a newer token would be refused as well.
const REST: SignedDuration = SignedDuration::from_secs(10);

/// A token that operators are shown.
pub(crate) struct Token {
    text: String,
    /// None where it does not say so.
    expires: Option<Timestamp>,
}

/// The token that is shown until half of its life is over, or until it is refused.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Held>>);

struct Held {
    token: Result<String, String>,
    since: Timestamp,
    /// When another one is asked for.
    renew: Option<Timestamp>,
}

impl Held {
    fn new(Token { text, expires }: Token, now: Timestamp) -> Self {
        let half = expires.map(|expires| (expires.duration_since(now) / 2).max(REST));
        Self { token: Ok(text), since: now, renew: half.and_then(|half| now.checked_add(half).ok()) }
    }

    fn is_due(&self, refused: Option<&str>, now: Timestamp) -> bool {
        let is_refused = refused.is_some_and(|refused| self.token.as_deref() == Ok(refused));
        let is_new = now.duration_since(self.since) < REST;
        is_refused && !is_new || self.renew.is_some_and(|renew| renew <= now)
    }
}

impl Kept {
    /// The token, or the one that `new` gives where it is due. `refused` is one that an operator did not know.
    pub(crate) async fn get(
        &self,
        refused: Option<&str>,
        now: Timestamp,
        new: &impl AsyncFn() -> Result<Token>,
    ) -> Result<String> {
        let mut held = self.0.lock().await;
        if let Some(held) = held.as_ref().filter(|held| !held.is_due(refused, now)) {
            return held.token.clone().map_err(|error| anyhow!(error));
        }
        let next = match new().await {
            Ok(token) => Held::new(token, now),
            Err(error) => {
                // The one before lasts a while yet.
                let before = held.take().filter(|_| refused.is_none()).and_then(|held| held.token.ok());
                let token = before.ok_or_else(|| format!("{error:#}"));
                Held { token, since: now, renew: now.checked_add(REST).ok() }
            }
        };
        held.insert(next).token.clone().map_err(|error| anyhow!(error))
    }

    /// The answer to `send` with the token; where that one is refused, with another one, if there is one.
    pub(crate) async fn show<T>(
        &self,
        now: Timestamp,
        new: &impl AsyncFn() -> Result<Token>,
        send: &impl AsyncFn(String) -> Result<(StatusCode, T)>,
    ) -> Result<(StatusCode, T)> {
        let token = self.get(None, now, new).await?;
        let answer = send(token.clone()).await?;
        if answer.0 != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let another = self.get(Some(&token), now, new).await?;
        if another == token { Ok(answer) } else { send(another).await }
    }
}

/// The kubeconfig's own token, if it has one.
pub(crate) async fn of_kubeconfig(auth: &AuthInfo) -> Result<Option<Token>> {
    if let Some(token) = &auth.token {
        return Ok(Some(Token { text: token.expose_secret().to_owned(), expires: None }));
    }
    if let Some(path) = &auth.token_file {
        let token = tokio::fs::read_to_string(path).await.with_context(|| format!("read {path}"))?;
        return Ok(Some(Token { text: token.trim().to_owned(), expires: None }));
    }
    match &auth.exec {
        Some(exec) => of_plugin(exec).await,
        None => Ok(None),
    }
}

/// Upstream: staging/src/k8s.io/client-go/plugin/pkg/client/auth/exec.
async fn of_plugin(exec: &ExecConfig) -> Result<Option<Token>> {
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
    let said = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    let expires = said("/status/expirationTimestamp").and_then(|time| time.parse().ok());
    Ok(said("/status/token").map(|text| Token { text: text.to_owned(), expires }))
}

/// A token of this account, by the caller's right to ask for one.
pub(crate) async fn of_account(client: &Client, namespace: &str, name: &str) -> Result<Token> {
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
    let status = answer.status.unwrap_or_default();
    let text = status.token.context("the apiserver granted a token without one")?;
    Ok(Token { text, expires: status.expiration_timestamp.map(|time| time.0) })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    #[tokio::test]
    async fn a_token_is_renewed_after_half_of_its_life() {
        let (kept, now, given) = (Kept::default(), Cell::new(0), Cell::new(0));
        let new = async || {
            given.set(given.get() + 1);
            anyhow::Ok(Token { text: given.get().to_string(), expires: Some(at(now.get() + SECONDS)) })
        };
        for (second, expected) in [(0, "1"), (299, "1"), (300, "2"), (599, "2"), (600, "3")] {
            now.set(second);
            assert_eq!(kept.get(None, at(second), &new).await.unwrap(), expected, "{second}");
        }
    }

    #[tokio::test]
    async fn a_token_that_is_refused_is_shown_no_more() {
        let (kept, given) = (Kept::default(), Cell::new(0));
        let new = async || {
            given.set(given.get() + 1);
            anyhow::Ok(Token { text: given.get().to_string(), expires: None })
        };
        kept.get(None, at(0), &new).await.unwrap();
        let knows = async |token: String| {
            anyhow::Ok((if token == "2" { StatusCode::OK } else { StatusCode::UNAUTHORIZED }, token))
        };
        assert_eq!(kept.show(at(3600), &new, &knows).await.unwrap(), (StatusCode::OK, "2".to_owned()));
        // An operator that knows nobody does not make one after the other.
        let knows_nobody = async |token: String| anyhow::Ok((StatusCode::UNAUTHORIZED, token));
        for _ in 0..3 {
            let answer = kept.show(at(3605), &new, &knows_nobody).await.unwrap();
            assert_eq!(answer, (StatusCode::UNAUTHORIZED, "2".to_owned()));
        }
        assert_eq!(given.get(), 2);
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_renewed_is_shown_on() {
        let (kept, fails) = (Kept::default(), Cell::new(false));
        let new = async || -> Result<Token> {
            ensure!(!fails.get(), "no answer");
            Ok(Token { text: "one".to_owned(), expires: Some(at(SECONDS)) })
        };
        kept.get(None, at(0), &new).await.unwrap();
        fails.set(true);
        assert_eq!(kept.get(None, at(400), &new).await.unwrap(), "one");
        assert_eq!(kept.get(Some("one"), at(500), &new).await.unwrap_err().to_string(), "no answer");
        fails.set(false);
        assert_eq!(kept.get(None, at(520), &new).await.unwrap(), "one");
    }
}
