//! Which tokens are synced when a Secret, an account or the CA changes.
//!
//! A created account matters to no token: a token whose account is missing is deleted after a live read.

use shared::api::object::{Key, Meta};
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{ServiceAccount, Token};
use crate::observe::Caches;

/// A deleted token is synced too: its account may list it.
///
/// Upstream: `queueSecretSync` and `queueSecretUpdateSync`, `pkg/controller/serviceaccount/tokens_controller.go`.
pub(super) fn secret_changed(change: Change<'_, Token>) -> Vec<Effect> {
    let metadata = &change.latest().metadata;
    let gone = change.existing().is_none().then(|| Effect::Forget(metadata.key.clone(), metadata.uid));
    gone.into_iter().chain([Effect::Enqueue(metadata.key.clone(), Cause::Event)]).collect()
}

impl Caches {
    /// Upstream: `queueServiceAccountSync`, `pkg/controller/serviceaccount/tokens_controller.go`.
    pub(crate) fn service_account_changed(&self, change: Change<'_, ServiceAccount>) -> Vec<Effect> {
        match change {
            Change::Deleted(account) => {
                let Meta { key, uid, .. } = &account.metadata;
                let tokens = [Some(*uid), None].map(|named| self.tokens_of(key, named));
                tokens.into_iter().flatten().map(|token| Effect::Enqueue(token, Cause::Event)).collect()
            }
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
        }
    }

    /// All tokens: each contains the CA.
    pub(crate) fn root_ca_changed(&self) -> Vec<Key> {
        self.secrets.all().into_iter().map(|token| token.metadata.key.clone()).collect()
    }
}
