//! Executes a plan: at most one patch of a Secret's data, one deletion, or one patch of an account's list.

pub mod key;

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use shared::api::object::{Key, Uid};
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{DeleteOptions, Patch, Preconditions};

use crate::objects::{ACCOUNT_UID, CA_CERT, NAMESPACE, SECRETS, SERVICE_ACCOUNTS, TOKEN};
use crate::observe::{Observed, ObservedReference};
use crate::plan::jwt::Claims;
use crate::plan::reference::Unlisting;
use crate::plan::{Lacks, Plan, Reason};
use key::TokenKey;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    /// The file of the key; none if the operator is off.
    pub(crate) key_file: Option<PathBuf>,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        match plan {
            Plan::Keep(_) => Ok(()),
            Plan::Fill { lacks, account, preconditions } => self.fill(observed, lacks, account, preconditions).await,
            Plan::Delete { reason, preconditions } => {
                self.delete(&observed.token.metadata.key, &reason, preconditions).await
            }
        }
    }

    /// A merge patch keeps everything else in the Secret.
    async fn fill(
        &self,
        observed: &Observed,
        lacks: Lacks,
        account: Uid,
        preconditions: Preconditions,
    ) -> anyhow::Result<()> {
        let key = &observed.token.metadata.key;
        let data = self.data(observed, lacks, account)?;
        // The annotation with the name exists; a Secret without it is kept as it is.
        let metadata = json!({ "annotations": { ACCOUNT_UID: account } });
        let patch = Patch::merge(&json!({ "metadata": metadata, "data": data }));
        match self.ctx.for_key(key, preconditions.uid).patch(&SECRETS, key, preconditions, patch).await {
            Ok(_) => {
                tracing::info!(secret = %key, %lacks, "filled in token Secret");
                Ok(())
            }
            // A newer state is synced once the watch shows it.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error).context("cannot fill in the token Secret"),
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
        let path = self.key_file.as_deref().context("cannot sign a token: no private key")?;
        let signed = TokenKey::read(path).and_then(|key| key.sign(claims));
        signed.map_err(|error| anyhow!("cannot sign a token with {}: {error}", path.display()))
    }

    async fn delete(&self, key: &Key, reason: &Reason, preconditions: Preconditions) -> anyhow::Result<()> {
        let options = DeleteOptions::of(preconditions);
        match self.ctx.for_key(key, preconditions.uid).delete(&SECRETS, key, &options).await {
            Ok(()) => {
                tracing::info!(secret = %key, %reason, "deleted token Secret");
                Ok(())
            }
            // A newer state is synced once the watch shows it.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error).context("cannot delete the token Secret"),
        }
    }

    /// Executes the plan for a deleted token. The patch removes one entry from the list in any of its states.
    pub(crate) async fn unlist(&self, observed: &ObservedReference, plan: Unlisting) -> anyhow::Result<()> {
        let ObservedReference { secret, account, is_seen: _, listing: _ } = observed;
        let Unlisting::Remove(uid) = plan else { return Ok(()) };
        let account = account.key_in(secret.namespace());
        let patch = Patch::strategic(&json!({ "secrets": [{ "$patch": "delete", "name": secret.name() }] }));
        let patched = self.ctx.for_name(secret).patch(&SERVICE_ACCOUNTS, &account, uid, patch).await;
        if patched.unless_gone().context("cannot remove the Secret from its ServiceAccount")?.is_some() {
            tracing::info!(%secret, %account, "removed Secret from ServiceAccount");
        }
        Ok(())
    }
}
