//! Reads what is to be known of one token: its Secret and its account from the caches, and the account live where they
//! do not have it. Of a token that is gone the list of its account is read, live.
//!
//! Left out: reading the CA, which is [`shared::controllers::root_ca`]'s.

pub mod key;
pub mod leftovers;

use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::runtime::api_error::ApiError;
use shared::runtime::cache::{Cache, IndexId, IndexValue};
use shared::runtime::control::Control;
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::{AccountName, Listing, SERVICE_ACCOUNTS, ServiceAccount, TOKENS, Token};
use leftovers::Leftovers;

/// The observation of one token.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its Secret.
    pub token: Arc<Token>,
    /// The uid of the account that it names; none if that is not there.
    pub account: Option<Uid>,
    /// The apiserver's CA in base64; none if nobody has said which it is.
    pub ca: Option<Text>,
}

/// The observation of a token that is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedReference {
    /// The key of its Secret.
    pub secret: Key,
    /// The account that it named.
    pub account: AccountName,
    /// The account of that name, as just read; none if there is none.
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
}

/// The informers that fill the caches.
pub(crate) struct Informers {
    pub(crate) secrets: Informer<Token>,
    pub(crate) service_accounts: Informer<ServiceAccount>,
}

fn under_account(account: &Key) -> IndexValue {
    IndexValue::Text(Text::new(account.as_str()))
}

impl Caches {
    /// Empty caches, and the informers that fill them.
    pub(crate) fn new() -> (Self, Informers) {
        let mut secrets = InformerBuilder::<Token>::new().fields(TOKENS);
        let by_account = secrets.index(|Token { metadata, .. }, emit| {
            emit(under_account(&metadata.annotations.key_in(metadata.namespace())));
        });
        let secrets = secrets.build();
        let service_accounts = InformerBuilder::new().metadata_only().build();
        let caches = Self {
            secrets: secrets.cache(),
            by_account,
            service_accounts: service_accounts.cache(),
            leftovers: Leftovers::default(),
        };
        (caches, Informers { secrets, service_accounts })
    }

    /// Reads the token of this key; none if it is gone. `ca` is the apiserver's.
    pub fn observe(&self, key: &Key, ca: Option<&Text>) -> Option<Observed> {
        let token = self.secrets.get(key)?;
        let named = &token.metadata.annotations;
        let account = self.service_accounts.get(&named.key_in(key.namespace()));
        let account = account.map(|account| account.metadata.uid).filter(|uid| named.means(*uid));
        Some(Observed { account, ca: ca.map(|ca| Text::new(&STANDARD.encode(ca.as_bytes()))), token })
    }

    /// The keys of the tokens that name this account.
    pub(crate) fn tokens_of(&self, account: &Key) -> Vec<Key> {
        let tokens = self.secrets.by_index(self.by_account, &under_account(account));
        tokens.iter().map(|token| token.metadata.key.clone()).collect()
    }
}

/// The same, with the account as the apiserver has it.
pub(crate) async fn live_account(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let metadata = &observed.token.metadata;
    let named = &metadata.annotations;
    let read = control.get_metadata(&SERVICE_ACCOUNTS, &named.key_in(metadata.namespace())).await;
    let found: Option<ServiceAccount> = if_there(read).context("read its ServiceAccount")?;
    let account = found.map(|account| account.metadata.uid).filter(|uid| named.means(*uid));
    Ok(Observed { account, ..observed })
}

/// Reads the account that a token named which is gone.
pub(crate) async fn live_listing(
    control: &Control,
    secret: &Key,
    account: AccountName,
) -> anyhow::Result<ObservedReference> {
    let read = control.get(&SERVICE_ACCOUNTS, &account.key_in(secret.namespace())).await;
    let listing = if_there(read).context("read its ServiceAccount's list")?;
    Ok(ObservedReference { secret: secret.clone(), account, listing })
}

fn if_there<T>(read: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_object_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
