//! Reads what is to be known of one token: its Secret and its account from the caches, and the account live where they
//! do not have it and nobody has seen its end. Of a token that is gone the list of its account is read, live, if the
//! account is there.
//!
//! Left out: reading the CA, which is [`shared::controllers::root_ca`]'s.

pub mod ends;
pub mod key;
pub mod leftovers;

use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, Uid};
use shared::runtime::answers::Answers;
use shared::runtime::api_error::ApiError;
use shared::runtime::cache::{Cache, Change, IndexId, IndexValue};
use shared::runtime::control::Control;
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::{AccountName, Listing, SERVICE_ACCOUNTS, ServiceAccount, TOKENS, Token};
use ends::Ends;
use leftovers::Leftovers;

/// The observation of one token.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its Secret.
    pub token: Arc<Token>,
    /// The account that it names.
    pub account: Account,
    /// The apiserver's CA in base64; none if nobody has said which it is.
    pub ca: Option<Text>,
}

/// What is known of the account that a token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// It is there, and has this uid.
    There(Uid),
    /// Its end was seen.
    Ended,
    /// The cache does not have it, which may be behind.
    NotSeen,
    /// The apiserver does not have it.
    NotThere,
}

/// The observation of a token that is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedReference {
    /// The key of its Secret.
    pub secret: Key,
    /// The account that it named.
    pub account: AccountName,
    /// Whether the cache has that account.
    pub is_seen: bool,
    /// The account of that name, as just read; none if there is none, or if it was not read.
    pub listing: Option<Listing>,
}

/// The caches of this operator.
pub struct Caches {
    /// The Secrets of tokens.
    pub secrets: Arc<Cache<Token>>,
    by_account: IndexId,
    /// All ServiceAccounts, while there is a token.
    pub service_accounts: Arc<Cache<ServiceAccount>>,
    /// Tokens that are gone.
    pub leftovers: Leftovers,
    /// Accounts that have ended.
    pub ends: Ends,
    answers: Answers<Key, Option<Uid>>,
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) secrets: Informer<Token>,
    pub(crate) service_accounts: Informer<ServiceAccount>,
}

/// Where the tokens of an account are found: those that name its uid under that, the others under its name.
fn under(namespace: &str, named: &AccountName) -> IndexValue {
    match named.uid {
        Some(uid) => IndexValue::Uid(uid),
        None => IndexValue::Text(Text::new(named.key_in(namespace).as_str())),
    }
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let mut secrets = InformerBuilder::<Token>::new().fields(TOKENS);
        let by_account = secrets.index(|Token { metadata, .. }, emit| {
            emit(under(metadata.namespace(), &metadata.annotations));
        });
        let secrets = secrets.build();
        let service_accounts = InformerBuilder::new().metadata_only().build();
        let caches = Self {
            secrets: secrets.cache(),
            by_account,
            service_accounts: service_accounts.cache(),
            leftovers: Leftovers::default(),
            ends: Ends::default(),
            answers: Answers::default(),
        };
        (caches, Informers { secrets, service_accounts })
    }

    /// Reads the token of this key; none if it is gone. `ca` is the apiserver's.
    pub fn observe(&self, key: &Key, ca: Option<&Text>) -> Option<Observed> {
        let token = self.secrets.get(key)?;
        let named = &token.metadata.annotations;
        let account = match self.cached_account(key, named) {
            Some(uid) => Account::There(uid),
            None if named.uid.is_some_and(|uid| self.ends.concern(key, uid)) => Account::Ended,
            None => Account::NotSeen,
        };
        Some(Observed { account, ca: ca.map(|ca| Text::new(&STANDARD.encode(ca.as_bytes()))), token })
    }

    /// Reads what a token has left behind that is gone, if it may have left anything.
    pub fn observe_reference(&self, secret: &Key) -> Option<ObservedReference> {
        let account = self.leftovers.of(secret)?;
        let is_seen = self.cached_account(secret, &account).is_some();
        Some(ObservedReference { secret: secret.clone(), account, is_seen, listing: None })
    }

    fn cached_account(&self, token: &Key, named: &AccountName) -> Option<Uid> {
        let account = self.service_accounts.get(&named.key_in(token.namespace()))?;
        Some(account.metadata.uid).filter(|uid| named.means(*uid))
    }

    /// The keys of the tokens that name an account, by its uid or without any.
    pub(crate) fn tokens_of(&self, account: &Key, uid: Option<Uid>) -> Vec<Key> {
        let named = AccountName { name: Text::new(account.name()), uid };
        let tokens = self.secrets.by_index(self.by_account, &under(account.namespace(), &named));
        tokens.iter().map(|token| token.metadata.key.clone()).collect()
    }

    /// Takes in that an account has ended.
    pub(crate) fn note_end(&self, change: &Change<'_, ServiceAccount>) {
        if let Change::Deleted(account) = change {
            let Meta { key, uid, .. } = &account.metadata;
            self.ends.note(*uid, self.tokens_of(key, Some(*uid)));
        }
    }

    /// Takes in that a token has gone, and with it perhaps the last that names its account.
    pub(crate) fn note_token(&self, change: &Change<'_, Token>) {
        self.leftovers.note(change);
        if let Change::Deleted(token) = change {
            let (namespace, named) = (token.metadata.namespace(), &token.metadata.annotations);
            if self.secrets.count_by_index(self.by_account, &under(namespace, named)) == 0 {
                self.answers.forget(&named.key_in(namespace));
            }
        }
    }

    /// The same token, with the account as the apiserver has it.
    pub(crate) async fn look_for_account(&self, control: &Control, observed: Observed) -> anyhow::Result<Observed> {
        let metadata = &observed.token.metadata;
        let named = &metadata.annotations;
        let key = named.key_in(metadata.namespace());
        let read = async {
            let read = control.get_metadata::<ServiceAccount>(&SERVICE_ACCOUNTS, &key).await;
            if_there(read).map(|found| found.map(|account| account.metadata.uid))
        };
        let found = self.answers.ask(&key, metadata.resource_version, self.secrets.progress(), read).await;
        let found = found.context("read its ServiceAccount")?.filter(|uid| named.means(*uid));
        Ok(Observed { account: found.map_or(Account::NotThere, Account::There), ..observed })
    }
}

/// The same, with the account and its list as the apiserver has them.
pub(crate) async fn live_listing(control: &Control, observed: ObservedReference) -> anyhow::Result<ObservedReference> {
    let ObservedReference { secret, account, is_seen: _, listing: _ } = &observed;
    let read = control.get(&SERVICE_ACCOUNTS, &account.key_in(secret.namespace())).await;
    let listing = if_there(read).context("read its ServiceAccount's list")?;
    Ok(ObservedReference { listing, ..observed })
}

fn if_there<T>(read: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_object_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
