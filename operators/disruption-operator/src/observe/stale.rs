//! Reads pods that something outside of them was to end: one of them, or all that a search finds.
//!
//! Pods of namespaces with a budget are followed, and each such condition is seen at once. All others are searched now
//! and then: a condition that nobody takes back makes a difference only to a Job, which forgives a disrupted pod's
//! failure, so the pods of Jobs are searched often and all others seldom.
//! Left out: pods that have ended. Their conditions stay.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::pod::LIVE;
use shared::api::resource::PODS;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};

use super::Caches;
use crate::objects::Pod;

/// The label of every pod of a Job.
const OF_A_JOB: &str = "batch.kubernetes.io/controller-uid";

/// One pod.
#[derive(Clone, Debug, PartialEq)]
pub struct StalePod {
    /// One state of it.
    pub pod: Arc<Pod>,
}

/// The pods that a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The key of the search.
    pub key: Key,
    /// Those that something outside of them is said to end.
    pub targets: Vec<Arc<Pod>>,
}

/// Where a search looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// At the pods of Jobs.
    Jobs,
    /// At all pods.
    All,
}

impl Scope {
    /// Both.
    pub(crate) const EVERY: [Self; 2] = [Self::Jobs, Self::All];

    /// The key of the search.
    pub(crate) fn key(self) -> Key {
        Key::new("", if self == Self::Jobs { "jobs" } else { "all" })
    }

    /// Where the search of this key looks.
    pub(crate) fn of(key: &Key) -> Self {
        if *key == Self::Jobs.key() { Self::Jobs } else { Self::All }
    }

    /// How often it is done.
    pub(crate) fn period(self) -> Duration {
        match self {
            Self::Jobs => Duration::from_mins(5),
            Self::All => Duration::from_mins(60),
        }
    }
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

/// Lists where the search of this key looks.
pub(crate) async fn live_search(control: &Control, key: &Key) -> anyhow::Result<Search> {
    let label_selector = if Scope::of(key) == Scope::Jobs { OF_A_JOB } else { "" };
    let (selection, mut targets) =
        (Selection { field_selector: LIVE, label_selector, ..Selection::default() }, Vec::new());
    let each = |pod: Pod| {
        if pod.target.is_some() {
            targets.push(Arc::new(pod));
        }
    };
    control.list_each(&PODS, "", selection, Accept::Object, each).await.context("list pods")?;
    Ok(Search { key: key.clone(), targets })
}
