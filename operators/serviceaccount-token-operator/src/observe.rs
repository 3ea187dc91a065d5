//! Reads one token and its account, from the caches or live; for a deleted token, the list of its account.

use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, Uid};
use shared::following::answers::Answers;
use shared::following::cache::{Cache, Change, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::memory::{DeletedAccounts, DeletedTokens};
use crate::objects::{AccountName, Listing, SERVICE_ACCOUNTS, ServiceAccount, TOKENS, Token};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub token: Arc<Token>,
    pub account: Account,
    /// The apiserver's CA in base64; none if it is unknown.
    pub ca: Option<Text>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    Exists(Uid),
    Deleted,
    /// The cache, which may be stale, does not have it.
    NotSeen,
    /// The apiserver does not have it.
    Missing,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedReference {
    pub secret: Key,
    pub account: AccountName,
    pub is_seen: bool,
    /// The account of that name as just read; none if it does not exist or was not read.
    pub listing: Option<Listing>,
}

pub struct Caches {
    pub secrets: Arc<Cache<Token>>,
    by_account: IndexId,
    /// All ServiceAccounts, while there is a token.
    pub service_accounts: Arc<Cache<ServiceAccount>>,
    pub deleted_tokens: DeletedTokens,
    pub deleted_accounts: DeletedAccounts,
    answers: Answers<Key, Option<Uid>>,
}

pub(crate) struct Informers {
    pub(crate) secrets: Informer<Token>,
    pub(crate) service_accounts: Informer<ServiceAccount>,
}

/// The index value of a token: the account's uid if it names one, else the account's name.
fn under(namespace: &str, named: &AccountName) -> IndexValue {
    match named.uid {
        Some(uid) => IndexValue::Uid(uid),
        None => IndexValue::from(&named.key_in(namespace)),
    }
}

impl Caches {
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
            deleted_tokens: DeletedTokens::default(),
            deleted_accounts: DeletedAccounts::default(),
            answers: Answers::default(),
        };
        (caches, Informers { secrets, service_accounts })
    }

    /// Reads the token of this key; none if it is gone. `ca` is the apiserver's.
    pub fn observe(&self, key: &Key, ca: Option<&Text>) -> Option<Observed> {
        let token = self.secrets.get(key)?;
        let named = &token.metadata.annotations;
        let account = match self.cached_account(key, named) {
            Some(uid) => Account::Exists(uid),
            None if named.uid.is_some_and(|uid| self.deleted_accounts.contains(key, uid)) => Account::Deleted,
            None => Account::NotSeen,
        };
        Some(Observed { account, ca: ca.map(|ca| Text::new(&STANDARD.encode(ca.as_bytes()))), token })
    }

    /// Reads a deleted token whose account may still list it.
    pub fn observe_reference(&self, secret: &Key) -> Option<ObservedReference> {
        let account = self.deleted_tokens.account(secret)?;
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

    pub(crate) fn note_account(&self, change: &Change<'_, ServiceAccount>) {
        if let Change::Deleted(account) = change {
            let Meta { key, uid, .. } = &account.metadata;
            self.deleted_accounts.note(*uid, self.tokens_of(key, Some(*uid)));
        }
    }

    /// Remembers the deletion of a token. After the last one of an account, the answer about that account is dropped.
    pub(crate) fn note_token(&self, change: &Change<'_, Token>) {
        self.deleted_tokens.note(change);
        if let Change::Deleted(token) = change {
            let (namespace, named) = (token.metadata.namespace(), &token.metadata.annotations);
            if self.secrets.count_by_index(self.by_account, &under(namespace, named)) == 0 {
                self.answers.forget(&named.key_in(namespace));
            }
        }
    }

    pub(crate) async fn read_account(&self, control: &Control, observed: Observed) -> anyhow::Result<Observed> {
        let metadata = &observed.token.metadata;
        let named = &metadata.annotations;
        let key = named.key_in(metadata.namespace());
        let read = async {
            let read = control.get_metadata::<ServiceAccount>(&SERVICE_ACCOUNTS, &key).await;
            read.unless_absent().map(|found| found.map(|account| account.metadata.uid))
        };
        let found = self.answers.ask(&key, metadata.resource_version, self.secrets.progress(), read).await;
        let found = found.context("cannot read its ServiceAccount")?.filter(|uid| named.means(*uid));
        Ok(Observed { account: found.map_or(Account::Missing, Account::Exists), ..observed })
    }
}

pub(crate) async fn live_listing(control: &Control, observed: ObservedReference) -> anyhow::Result<ObservedReference> {
    let ObservedReference { secret, account, is_seen: _, listing: _ } = &observed;
    let read = control.get(&SERVICE_ACCOUNTS, &account.key_in(secret.namespace())).await;
    let listing = read.unless_absent().context("cannot read the list of its ServiceAccount")?;
    Ok(ObservedReference { listing, ..observed })
}
