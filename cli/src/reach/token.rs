//! The token for operators: a ServiceAccount's, for [`AUDIENCE`] alone.

use anyhow::{Context, Result, anyhow, bail};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use shared::api::explain::AUDIENCE;
use tokio::sync::Mutex;

use crate::words::why_not;

/// The minimum that the apiserver grants.
const SECONDS: i64 = 600;
/// Pause between requests for a token, also after a refusal.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);

pub(crate) struct Token {
    text: String,
    expires: Option<Timestamp>,
}

/// The current token, renewed after half of its lifetime or after a refusal.
#[derive(Default)]
pub(crate) struct TokenCache(Mutex<Option<CachedToken>>);

struct CachedToken {
    token: Result<String, String>,
    since: Timestamp,
    renew: Option<Timestamp>,
}

impl CachedToken {
    fn new(Token { text, expires }: Token, now: Timestamp) -> Self {
        let half = expires.map(|expires| (expires.duration_since(now) / 2).max(PAUSE));
        Self { token: Ok(text), since: now, renew: half.and_then(|half| now.checked_add(half).ok()) }
    }

    fn is_due(&self, refused: Option<&str>, now: Timestamp) -> bool {
        let is_refused = refused.is_some_and(|refused| self.token.as_deref() == Ok(refused));
        let is_new = now.duration_since(self.since) < PAUSE;
        is_refused && !is_new || self.renew.is_some_and(|renew| renew <= now)
    }
}

impl TokenCache {
    /// `refused` is a token that an operator rejected.
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
            Ok(token) => CachedToken::new(token, now),
            Err(error) => {
                // The previous token is still valid for a while.
                let before = held.take().filter(|_| refused.is_none()).and_then(|held| held.token.ok());
                let token = before.ok_or_else(|| format!("{error:#}"));
                CachedToken { token, since: now, renew: now.checked_add(PAUSE).ok() }
            }
        };
        held.insert(next).token.clone().map_err(|error| anyhow!(error))
    }

    /// Calls `send` with the token, and once more with a new one after a 401.
    pub(crate) async fn send_with<T>(
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

pub(crate) async fn request(client: &Client, namespace: &str, account: &str) -> Result<Token> {
    let spec = TokenRequestSpec {
        audiences: Some(vec![AUDIENCE.to_owned()]),
        expiration_seconds: Some(SECONDS),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let answer = match accounts.create_token_request(account, &PostParams::default(), &request).await {
        Ok(answer) => answer,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            bail!("ServiceAccount {namespace}/{account} does not exist (kubectl apply -k manifests/viewer)")
        }
        Err(error) => {
            bail!("cannot create a token of ServiceAccount {namespace}/{account}: {}", why_not(&error))
        }
    };
    let status = answer.status.unwrap_or_default();
    let text = status.token.context("the apiserver returned no token")?;
    Ok(Token { text, expires: status.expiration_timestamp.map(|time| time.0) })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::ensure;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    #[tokio::test]
    async fn a_token_is_renewed_after_half_of_its_life() {
        let (kept, now, given) = (TokenCache::default(), Cell::new(0), Cell::new(0));
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
        let (kept, given) = (TokenCache::default(), Cell::new(0));
        let new = async || {
            given.set(given.get() + 1);
            anyhow::Ok(Token { text: given.get().to_string(), expires: None })
        };
        kept.get(None, at(0), &new).await.unwrap();
        let knows = async |token: String| {
            anyhow::Ok((if token == "2" { StatusCode::OK } else { StatusCode::UNAUTHORIZED }, token))
        };
        assert_eq!(kept.send_with(at(3600), &new, &knows).await.unwrap(), (StatusCode::OK, "2".to_owned()));
        // An operator that knows nobody does not make one after the other.
        let knows_nobody = async |token: String| anyhow::Ok((StatusCode::UNAUTHORIZED, token));
        for _ in 0..3 {
            let answer = kept.send_with(at(3605), &new, &knows_nobody).await.unwrap();
            assert_eq!(answer, (StatusCode::UNAUTHORIZED, "2".to_owned()));
        }
        assert_eq!(given.get(), 2);
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_renewed_is_shown_on() {
        let (kept, fails) = (TokenCache::default(), Cell::new(false));
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
