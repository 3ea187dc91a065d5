//! Reads a pod that something outside of it was to end.
//!
//! Left out: which pods those are where pods are not followed, which [`super::search`] finds.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};

use super::Caches;
use crate::objects::Pod;

/// One pod.
#[derive(Clone, Debug, PartialEq)]
pub struct StalePod {
    /// One state of it.
    pub pod: Arc<Pod>,
}

impl Caches {
    /// Reads a pod that is followed; none if the cache does not have it.
    pub fn observe_stale(&self, key: &Key) -> Option<StalePod> {
        self.pods.get(key).map(|pod| StalePod { pod })
    }
}

/// A pod as the cache has it, or, where pods are not followed, as it is; none if it is gone.
pub(crate) async fn live_stale(caches: &Caches, control: &Control, key: &Key) -> anyhow::Result<Option<StalePod>> {
    let known = caches.observe_stale(key);
    if known.is_some() || caches.has_budgets(key.namespace()) {
        return Ok(known);
    }
    let (fields, mut found) = (format!("metadata.name={}", key.name()), None);
    let selection = Selection { field_selector: &fields, ..Selection::default() };
    let each = |pod: Pod| found = Some(StalePod { pod: Arc::new(pod) });
    control.list_each(&PODS, key.namespace(), selection, Accept::Object, each).await.context("read the pod")?;
    Ok(found)
}
