//! Reads the first day of tracking from the cache. Reads live, in each round, all tokens, and the accounts and pods of
//! those that may be unused.
//!
//! A round is once a day and most clusters have no such token, so nothing else is watched.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::pod::Pod;
use crate::objects::{SECRETS, SERVICE_ACCOUNTS, ServiceAccount, TOKENS, TRACKING, Token, Tracking, tracking_key};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub token: Token,
    /// The account of the name that it names; none if it does not exist or was not read.
    pub account: Option<ServiceAccount>,
    /// The name of a pod that uses it; none if no pod does or none was read.
    pub used_by: Option<Text>,
}

pub struct Caches {
    pub config_maps: Arc<Cache<Tracking>>,
}

pub(crate) struct Informers {
    pub(crate) config_maps: Informer<Tracking>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let (_, name) = TRACKING;
        let config_maps = InformerBuilder::new().fields(format!("metadata.name={name}")).build();
        (Self { config_maps: config_maps.cache() }, Informers { config_maps })
    }

    pub(crate) fn tracking(&self) -> Option<Arc<Tracking>> {
        self.config_maps.get(&tracking_key())
    }
}

impl Observed {
    /// A token whose account and pods were not read.
    pub fn of(token: Token) -> Self {
        Self { token, account: None, used_by: None }
    }
}

/// Lists all tokens, sorted by namespace and name.
pub(crate) async fn live_tokens(control: &Control) -> anyhow::Result<Vec<Token>> {
    let (selection, mut tokens) = (Selection { field_selector: TOKENS, ..Selection::default() }, Vec::new());
    let each = |token: Token| tokens.push(token);
    control.list_each(&SECRETS, "", selection, Accept::Metadata, each).await.context("cannot list tokens")?;
    tokens.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    Ok(tokens)
}

/// Adds the account, and a pod that uses the token if the account lists it.
pub(crate) async fn live_token(control: &Control, uses: &mut Uses, observed: Observed) -> anyhow::Result<Observed> {
    let Observed { token, .. } = observed;
    let account = live_account(control, &token).await?;
    let is_listed = account.as_ref().is_some_and(|account| account.lists(&token));
    let used_by = if is_listed { uses.live(control, &token.metadata.key).await? } else { None };
    Ok(Observed { token, account, used_by })
}

async fn live_account(control: &Control, token: &Token) -> anyhow::Result<Option<ServiceAccount>> {
    let name = &token.metadata.annotations.name;
    let account = control.get::<ServiceAccount>(&SERVICE_ACCOUNTS, &Key::new(token.metadata.namespace(), name)).await;
    account.unless_absent().context("cannot read its ServiceAccount")
}

/// The Secrets that the pods of one namespace use, each with one of these pods. Tokens are sorted by namespace, so each
/// namespace's pods are listed once.
///
/// Upstream: `getMountedSecretNames`.
#[derive(Default)]
pub(crate) struct Uses {
    namespace: Option<Text>,
    pods: BTreeMap<Text, Text>,
}

impl Uses {
    /// The name of a pod that uses the Secret of this key.
    async fn live(&mut self, control: &Control, secret: &Key) -> anyhow::Result<Option<Text>> {
        let namespace = secret.namespace();
        if self.namespace.as_deref() != Some(namespace) {
            let mut pods = BTreeMap::new();
            let each = |Pod { name, secrets }: Pod| {
                pods.extend(secrets.into_iter().map(|secret| (secret, name.clone())));
            };
            let listed = control.list_each(&PODS, namespace, Selection::default(), Accept::Json, each).await;
            listed.context("cannot list the pods of its namespace")?;
            *self = Self { namespace: Some(Text::new(namespace)), pods };
        }
        Ok(self.pods.get(secret.name()).cloned())
    }
}
