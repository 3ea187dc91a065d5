//! The accounts whose end was seen: their tokens go without a look whether the account is there.
//!
//! No account gets the uid of another one, so an end is for good, and it counts for the tokens that name this uid. A
//! list that lacks an account shows its end as well as an event does, because informers list what etcd holds and never
//! an older state. It counts for one sync: after a deletion that has failed the account is looked for, since by then
//! etcd may have been restored from a backup in which it lives.
//! Left out: tokens that name no uid. Another account may have the name by now.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Uid};

/// The uid of the account that has ended, by the key of each of its tokens, until that was synced.
#[derive(Default)]
pub struct Ends(Mutex<BTreeMap<Key, Uid>>);

impl Ends {
    /// This account has ended, and these tokens name its uid.
    pub(crate) fn note(&self, account: Uid, tokens: impl IntoIterator<Item = Key>) {
        self.tokens().extend(tokens.into_iter().map(|token| (token, account)));
    }

    /// Whether the end of this account was seen, as this token has not been told yet.
    pub(crate) fn concern(&self, token: &Key, account: Uid) -> bool {
        self.tokens().get(token) == Some(&account)
    }

    /// The token has been told.
    pub(crate) fn told(&self, token: &Key) {
        self.tokens().remove(token);
    }

    /// Forgets all: an account that has ended in a history that is no more may be there.
    pub(crate) fn start_over(&self) {
        self.tokens().clear();
    }

    fn tokens(&self) -> MutexGuard<'_, BTreeMap<Key, Uid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
