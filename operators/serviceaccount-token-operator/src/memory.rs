//! Deletions, remembered until the keys that they concern are synced.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Uid};
use shared::following::cache::Change;

use crate::objects::{AccountName, Token};

/// The uid of a deleted account, by the key of each token that names it.
///
/// A uid is never reused, so such a token is deleted without a live read. A later list that lacks the account shows its
/// deletion too. A deletion counts for one sync: if that fails, the account is read live, because etcd may have been
/// restored meanwhile.
#[derive(Default)]
pub struct DeletedAccounts(Mutex<BTreeMap<Key, Uid>>);

impl DeletedAccounts {
    pub(crate) fn note(&self, account: Uid, tokens: impl IntoIterator<Item = Key>) {
        self.tokens().extend(tokens.into_iter().map(|token| (token, account)));
    }

    /// Whether the deletion of this account is remembered for this token.
    pub(crate) fn contains(&self, token: &Key, account: Uid) -> bool {
        self.tokens().get(token) == Some(&account)
    }

    pub(crate) fn clear(&self, token: &Key) {
        self.tokens().remove(token);
    }

    /// Forgets all deletions: after a restore of etcd a deleted account may exist.
    pub(crate) fn reset(&self) {
        self.tokens().clear();
    }

    fn tokens(&self) -> MutexGuard<'_, BTreeMap<Key, Uid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The account that a deleted token named, by the token's key: its list may still have the token.
#[derive(Default)]
pub struct DeletedTokens(Mutex<BTreeMap<Key, AccountName>>);

impl DeletedTokens {
    pub(crate) fn note(&self, change: &Change<'_, Token>) {
        let metadata = &change.latest().metadata;
        let is_gone = change.existing().is_none();
        let mut accounts = self.accounts();
        if is_gone && !metadata.annotations.name.is_empty() {
            accounts.insert(metadata.key.clone(), metadata.annotations.clone());
        } else {
            accounts.remove(&metadata.key);
        }
    }

    pub fn account(&self, secret: &Key) -> Option<AccountName> {
        self.accounts().get(secret).cloned()
    }

    /// Forgets the deletion, unless another token of this key was deleted meanwhile.
    pub(crate) fn clear(&self, secret: &Key, account: &AccountName) {
        let mut accounts = self.accounts();
        if accounts.get(secret) == Some(account) {
            accounts.remove(secret);
        }
    }

    fn accounts(&self) -> MutexGuard<'_, BTreeMap<Key, AccountName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
