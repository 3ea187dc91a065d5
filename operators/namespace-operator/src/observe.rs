//! The live reads of one round: the namespace, the served resources, the pods' grace, the remaining objects of a kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::{NAMESPACES, PODS, Resource};
use shared::following::cache::Cache;
use shared::following::informer::{Feeder, Informer, InformerBuilder};
use shared::transport::api_error::{ApiError, ResultExt};
use shared::transport::client::Accept;
use shared::transport::discovery::Discovery;
use shared::working::control::{Control, Selection};

use crate::objects::{Item, LiveNamespace, Namespace, Pod};

pub struct Caches {
    /// The metadata of the namespaces that are being deleted.
    pub namespaces: Arc<Cache<Namespace>>,
}

pub(crate) struct Informers {
    pub(crate) namespaces: Informer<Namespace>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub namespace: LiveNamespace,
}

/// The resources that the apiserver serves, as far as discovery could read them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    pub discovery: Discovery,
    /// Why not all kinds are known.
    pub failure: Option<String>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        // The apiserver sets the phase in the write that sets the deletionTimestamp.
        let namespaces = InformerBuilder::new().metadata_only().fields("status.phase=Terminating").build();
        (Self { namespaces: namespaces.cache() }, Informers { namespaces })
    }
}

/// Observes one namespace; none if it is gone.
///
/// # Errors
/// If the namespace cannot be read.
pub async fn observe(control: &Control, key: &Key) -> anyhow::Result<Option<Observed>> {
    let namespace = control.get_raw(&NAMESPACES, key).await.unless_absent().context("cannot read the namespace")?;
    Ok(namespace.map(|namespace| Observed { namespace: LiveNamespace(namespace) }))
}

/// The served resources.
///
/// Upstream: `ProcessDiscoverResourcesErr`, `pkg/controller/namespace/deletion/status_condition_utils.go`.
pub async fn live_served(feeder: &Feeder) -> Served {
    match feeder.discover().await {
        Ok(discovery) => {
            let failure = discovery
                .failure()
                .map(|failure| format!("Discovery failed for some groups, {} failing: {failure}", failure.count()));
            Served { discovery, failure }
        }
        Err(error) => Served { failure: Some(error.to_string()), ..Served::default() },
    }
}

/// The longest grace of a pod that has not ended.
///
/// Upstream: `estimateGracefulTerminationForPods`.
pub async fn live_grace_seconds(control: &Control, namespace: &str) -> Result<i64, ApiError> {
    let mut longest = 0;
    control
        .list_each(&PODS, namespace, Selection::default(), Accept::Object, |pod: Pod| {
            longest = longest.max(pod.grace_seconds());
        })
        .await?;
    Ok(longest)
}

#[derive(Debug, Default)]
pub struct Remaining {
    pub count: usize,
    /// How many of them have each finalizer.
    pub finalizers: BTreeMap<String, usize>,
}

/// Lists the remaining objects of a kind; none if it does not support lists.
pub async fn live_remaining(control: &Control, resource: &Resource, namespace: &str) -> Result<Remaining, ApiError> {
    let mut remaining = Remaining::default();
    let listed = control
        .list_each(resource, namespace, Selection::default(), Accept::Metadata, |item: Item| {
            remaining.count += 1;
            for finalizer in item.metadata.finalizers.into_iter().flatten() {
                *remaining.finalizers.entry(finalizer).or_default() += 1;
            }
        })
        .await;
    match listed {
        Err(error) if is_unsupported(&error) => Ok(Remaining::default()),
        listed => listed.map(|()| remaining),
    }
}

/// Whether the kind does not support the call.
pub fn is_unsupported(error: &ApiError) -> bool {
    error.is_not_found() || error.is_method_not_supported()
}
