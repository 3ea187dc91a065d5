//! Reads a pod with the condition DisruptionTarget.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use super::Caches;
use crate::objects::Pod;

#[derive(Clone, Debug, PartialEq)]
pub struct StalePod {
    pub pod: Arc<Pod>,
}

impl Caches {
    pub fn observe_stale(&self, key: &Key) -> Option<StalePod> {
        self.pods.get(key).map(|pod| StalePod { pod })
    }
}

/// Read a pod from the cache, or live if the pods of its namespace are not followed. None if it is gone.
pub(crate) async fn live_stale(caches: &Caches, control: &Control, key: &Key) -> anyhow::Result<Option<StalePod>> {
    let known = caches.observe_stale(key);
    if known.is_some() || caches.has_budgets(key.namespace()) {
        return Ok(known);
    }
    let (fields, mut found) = (format!("metadata.name={}", key.name()), None);
    let selection = Selection { field_selector: &fields, ..Selection::default() };
    let each = |pod: Pod| found = Some(StalePod { pod: Arc::new(pod) });
    control.list_each(&PODS, key.namespace(), selection, Accept::Object, each).await.context("cannot read pod")?;
    Ok(found)
}
