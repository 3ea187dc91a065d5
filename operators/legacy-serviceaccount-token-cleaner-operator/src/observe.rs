//! Reads since when uses are noted, and in a round all tokens, live; of a token that may have to go its account and the
//! pods of its namespace too.
//!
//! Left out: following tokens, accounts and pods. A round is once a day, and most clusters have no such token.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::runtime::cache::Cache;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::pod::Pod;
use crate::objects::{SECRETS, SERVICE_ACCOUNTS, ServiceAccount, TOKENS, TRACKING, Token, Tracking, tracking_key};

/// The observation of one token.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The token.
    pub token: Token,
    /// The account of the name that it has; none if there is none, or where it makes no difference.
    pub account: Option<ServiceAccount>,
    /// The name of a pod that uses it, if one does; none where that makes no difference.
    pub used_by: Option<Text>,
}

/// The cache of this operator.
pub struct Caches {
    /// ConfigMaps of the name of the apiserver's.
    pub config_maps: Arc<Cache<Tracking>>,
}

/// The informer that fills the cache.
pub(crate) struct Informers {
    pub(crate) config_maps: Informer<Tracking>,
}

impl Caches {
    /// An empty cache, and the informer that fills it.
    pub(crate) fn new() -> (Self, Informers) {
        let (_, name) = TRACKING;
        let config_maps = InformerBuilder::new().fields(format!("metadata.name={name}")).build();
        (Self { config_maps: config_maps.cache() }, Informers { config_maps })
    }

    /// The apiserver's ConfigMap; none before it has one.
    pub(crate) fn tracking(&self) -> Option<Arc<Tracking>> {
        self.config_maps.get(&tracking_key())
    }
}

impl Observed {
    /// A token of which nothing else is known.
    pub fn of(token: Token) -> Self {
        Self { token, account: None, used_by: None }
    }
}

/// All tokens, by namespace and name.
pub(crate) async fn live_tokens(control: &Control) -> anyhow::Result<Vec<Token>> {
    let (selection, mut tokens) = (Selection { field_selector: TOKENS, ..Selection::default() }, Vec::new());
    let each = |token: Token| tokens.push(token);
    control.list_each(&SECRETS, "", selection, Accept::Metadata, each).await.context("list tokens")?;
    tokens.sort_unstable_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    Ok(tokens)
}

/// The same, with its account, and if that lists it, with a pod that uses it.
pub(crate) async fn live_token(control: &Control, uses: &mut Uses, observed: Observed) -> anyhow::Result<Observed> {
    let Observed { token, .. } = observed;
    let account = live_account(control, &token).await?;
    let is_listed = account.as_ref().is_some_and(|account| account.lists(&token));
    let used_by = if is_listed { uses.live(control, &token.metadata.key).await? } else { None };
    Ok(Observed { token, account, used_by })
}

async fn live_account(control: &Control, token: &Token) -> anyhow::Result<Option<ServiceAccount>> {
    let name = &token.metadata.annotations.name;
    if name.is_empty() {
        return Ok(None);
    }
    match control.get(&SERVICE_ACCOUNTS, &Key::new(token.metadata.namespace(), name)).await {
        Ok(account) => Ok(Some(account)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).context("read its ServiceAccount"),
    }
}

/// The Secrets that the pods of one namespace use, each with one of these pods. Tokens come by namespace, so that pods
/// are listed once for each.
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
            listed.context("list the pods of its namespace")?;
            *self = Self { namespace: Some(Text::new(namespace)), pods };
        }
        Ok(self.pods.get(secret.name()).cloned())
    }
}
