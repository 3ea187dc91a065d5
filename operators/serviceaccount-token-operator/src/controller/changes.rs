//! Which tokens are synced when a Secret, an account or the CA changes.
//!
//! Left out: accounts that appear or change. A token without its account does not wait: the account is read, live, and
//! the token goes if there is none. And tokens of other accounts of a name that was deleted: they had no account before.

use shared::api::object::{Key, Meta};
use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::{ServiceAccount, Token};
use crate::observe::Caches;

impl Caches {
    /// A token that is gone is synced too: its account may list it.
    ///
    /// Upstream: `queueSecretSync` and `queueSecretUpdateSync`, `pkg/controller/serviceaccount/tokens_controller.go`.
    #[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
    pub(crate) fn secret_changed(&self, change: Change<'_, Token>) -> Vec<Effect> {
        let metadata = &change.latest().metadata;
        let gone = change.existing().is_none().then(|| Effect::Forget(metadata.key.clone(), metadata.uid));
        gone.into_iter().chain([Effect::Enqueue(metadata.key.clone(), Cause::Event)]).collect()
    }

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

    /// Each token contains the CA.
    pub(crate) fn root_ca_changed(&self) -> Vec<Key> {
        self.secrets.all().into_iter().map(|token| token.metadata.key.clone()).collect()
    }
}
