//! Tokens that were deleted, and the account that each named: its list may still have them.
//!
//! Left out: tokens that were deleted while no replica worked. No cache says that there were any, and an entry that
//! names nothing does no harm.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::Key;
use shared::runtime::cache::Change;

use crate::objects::{AccountName, Token};

/// The accounts of deleted tokens, by the token's key, until their lists were looked at.
#[derive(Default)]
pub struct Leftovers(Mutex<BTreeMap<Key, AccountName>>);

impl Leftovers {
    /// Takes in a change. A Secret that has come again is rightly listed.
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

    /// The account of a deleted token, if its list was not looked at yet.
    pub fn of(&self, secret: &Key) -> Option<AccountName> {
        self.accounts().get(secret).cloned()
    }

    /// The list of this account was looked at. Meanwhile another token may have come and gone.
    pub(crate) fn done(&self, secret: &Key, account: &AccountName) {
        let mut accounts = self.accounts();
        if accounts.get(secret) == Some(account) {
            accounts.remove(secret);
        }
    }

    fn accounts(&self) -> MutexGuard<'_, BTreeMap<Key, AccountName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
