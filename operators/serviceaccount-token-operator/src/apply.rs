//! Executes a plan: at most one patch of a Secret's data, one deletion, or one patch of an account's list.
//!
//! Left out: events, of which upstream has none.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use shared::api::object::{Key, Uid};
use shared::runtime::control::{Control, DeleteOptions, Patch, Preconditions};

use crate::objects::{ACCOUNT_UID, CA_CERT, NAMESPACE, SECRETS, SERVICE_ACCOUNTS, TOKEN};
use crate::observe::key::TokenKey;
use crate::observe::{Observed, ObservedReference};
use crate::plan::jwt::Claims;
use crate::plan::reference::Unlisting;
use crate::plan::{Lacks, Plan, Reason};

/// Fills in and deletes tokens.
pub(crate) struct Writer {
    pub(crate) control: Control,
    /// The file of the key; none if tokens are left alone.
    pub(crate) key_file: Option<PathBuf>,
}

/// The result of executing a plan.
#[derive(Debug)]
pub struct Outcome {
    /// The error of the write, if it failed.
    pub error: Option<anyhow::Error>,
}

impl Writer {
    /// Executes the plan for a token.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let key = &observed.token.metadata.key;
        let done = match plan {
            Plan::Keep(_) => Ok(()),
            Plan::Fill { lacks, account, preconditions } => self.fill(observed, lacks, account, preconditions).await,
            Plan::Delete { reason, preconditions } => self.delete(key, &reason, preconditions).await,
        };
        Outcome { error: done.err() }
    }

    /// A merge patch, so everything else in the Secret stays.
    async fn fill(
        &self,
        observed: &Observed,
        lacks: Lacks,
        account: Uid,
        preconditions: Preconditions,
    ) -> anyhow::Result<()> {
        let key = &observed.token.metadata.key;
        let data = self.data(observed, lacks, account)?;
        // The name of the account is there, or the Secret would not be filled in.
        let metadata = json!({ "annotations": { ACCOUNT_UID: account } });
        let patch = Patch::merge(&json!({ "metadata": metadata, "data": data }));
        match self.control.for_key(key, preconditions.uid).patch(&SECRETS, key, preconditions, patch).await {
            Ok(_) => {
                tracing::info!(secret = %key, %lacks, "filled in the token's Secret");
                Ok(())
            }
            // Somebody was faster; a newer state is looked at once it is seen.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error).context("fill in the token's Secret"),
        }
    }

    /// The lacking values, in base64.
    fn data(&self, observed: &Observed, lacks: Lacks, account: Uid) -> anyhow::Result<Map<String, Value>> {
        let Observed { token, account: _, ca } = observed;
        let (metadata, mut data) = (&token.metadata, Map::new());
        if lacks.token {
            let claims = Claims {
                namespace: metadata.namespace(),
                account: &metadata.annotations.name,
                account_uid: account,
                secret: metadata.name(),
            };
            data.insert(TOKEN.to_owned(), STANDARD.encode(self.sign(&claims)?).into());
        }
        if lacks.namespace {
            data.insert(NAMESPACE.to_owned(), STANDARD.encode(metadata.namespace()).into());
        }
        if let Some(ca) = ca.as_ref().filter(|_| lacks.ca) {
            data.insert(CA_CERT.to_owned(), ca.as_str().into());
        }
        Ok(data)
    }

    fn sign(&self, claims: &Claims<'_>) -> anyhow::Result<String> {
        let path = self.key_file.as_deref().context("there is no key to sign a token with")?;
        let signed = TokenKey::read(path).and_then(|key| key.sign(claims));
        signed.map_err(|error| anyhow!("sign a token by {}: {error}", path.display()))
    }

    async fn delete(&self, key: &Key, reason: &Reason, preconditions: Preconditions) -> anyhow::Result<()> {
        let options = DeleteOptions::of(preconditions);
        match self.control.for_key(key, preconditions.uid).delete(&SECRETS, key, &options).await {
            Ok(()) => {
                tracing::info!(secret = %key, %reason, "deleted the token's Secret");
                Ok(())
            }
            // As above.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error).context("delete the token's Secret"),
        }
    }

    /// Executes the plan for the list that a token was in. The patch takes one entry away in any state of the list.
    pub(crate) async fn unlist(&self, observed: &ObservedReference, plan: Unlisting) -> anyhow::Result<()> {
        let ObservedReference { secret, account, is_seen: _, listing: _ } = observed;
        let Unlisting::Remove(uid) = plan else { return Ok(()) };
        let account = account.key_in(secret.namespace());
        let patch = Patch::strategic(&json!({ "secrets": [{ "$patch": "delete", "name": secret.name() }] }));
        match self.control.for_name(secret).patch(&SERVICE_ACCOUNTS, &account, uid, patch).await {
            Ok(_) => {
                tracing::info!(%secret, %account, "took the Secret from the ServiceAccount's list");
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("take the Secret from its ServiceAccount's list"),
        }
    }
}
