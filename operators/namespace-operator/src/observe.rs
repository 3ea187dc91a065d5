//! What is read for one round: the namespace, what is served, the pods' grace, and what remains of a kind. All live.

use std::collections::BTreeMap;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::{NAMESPACES, PODS, Resource};
use shared::runtime::api_error::ApiError;
use shared::runtime::client::Accept;
use shared::runtime::control::Control;
use shared::runtime::discovery::Discovery;
use shared::runtime::informer::Feeder;

use crate::objects::{Item, LiveNamespace, Pod};

/// The namespace; none if it is gone.
pub async fn namespace(control: &Control, key: &Key) -> anyhow::Result<Option<LiveNamespace>> {
    match control.get_raw(&NAMESPACES, key).await {
        Ok(namespace) => Ok(Some(LiveNamespace(namespace))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).context("read the namespace"),
    }
}

/// What is served, and why not all of it is known.
///
/// Upstream: `ProcessDiscoverResourcesErr`, `pkg/controller/namespace/deletion/status_condition_utils.go`.
pub async fn served(feeder: &Feeder) -> (Discovery, Option<String>) {
    match feeder.discover().await {
        Ok(discovery) => {
            let failure = discovery
                .failure()
                .map(|failure| format!("Discovery failed for some groups, {} failing: {failure}", failure.count()));
            (discovery, failure)
        }
        Err(error) => (Discovery::default(), Some(error.to_string())),
    }
}

/// The longest grace of a pod that has not ended.
///
/// Upstream: `estimateGracefulTerminationForPods`.
pub async fn pods_grace_seconds(control: &Control, namespace: &str) -> Result<i64, ApiError> {
    let mut longest = 0;
    control.list_each(&PODS, namespace, Accept::Object, |pod: Pod| longest = longest.max(pod.grace_seconds())).await?;
    Ok(longest)
}

/// What remains of a kind.
#[derive(Debug, Default)]
pub struct Remaining {
    /// How many objects.
    pub count: usize,
    /// How many of them have each finalizer.
    pub finalizers: BTreeMap<String, usize>,
}

/// What remains of a kind; nothing where it cannot be listed.
pub async fn remaining(control: &Control, resource: &Resource, namespace: &str) -> Result<Remaining, ApiError> {
    let mut remaining = Remaining::default();
    let listed = control
        .list_each(resource, namespace, Accept::Metadata, |item: Item| {
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

/// Whether the kind has no such call at all.
pub fn is_unsupported(error: &ApiError) -> bool {
    error.is_not_found() || error.is_method_not_supported()
}
