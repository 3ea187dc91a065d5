//! Searches for pods with the condition DisruptionTarget in namespaces whose pods are not followed, one page at a time.
//!
//! A stale condition matters only to a Job, which ignores the failure of a disrupted pod. Therefore the pods of Jobs are
//! searched often and all others seldom.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::pod::LIVE;
use shared::api::resource::PODS;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};

use crate::memory::searches::Searches;
use crate::objects::Pod;

/// The label of all pods of Jobs.
const OF_A_JOB: &str = "batch.kubernetes.io/controller-uid";

/// One page of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The key of the search.
    pub key: Key,
    /// The pods with the condition.
    pub targets: Vec<Arc<Pod>>,
    /// Whether there are more pages.
    pub goes_on: bool,
}

/// The pods that a search covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The pods of Jobs.
    Jobs,
    /// All pods.
    All,
}

impl Scope {
    /// Every search.
    pub(crate) const EVERY: [Self; 2] = [Self::Jobs, Self::All];

    /// The key of the search.
    pub(crate) fn key(self) -> Key {
        Key::new("", if self == Self::Jobs { "jobs" } else { "all" })
    }

    /// The scope of the search of this key.
    pub(crate) fn of(key: &Key) -> Self {
        if *key == Self::Jobs.key() { Self::Jobs } else { Self::All }
    }

    /// The pause between two searches.
    pub(crate) fn period(self) -> Duration {
        match self {
            Self::Jobs => Duration::from_mins(5),
            Self::All => Duration::from_mins(60),
        }
    }

    /// The pause between two pages.
    pub(crate) fn pause(self) -> Duration {
        match self {
            Self::Jobs => Duration::from_secs(1),
            Self::All => Duration::from_mins(1),
        }
    }
}

/// Read the next page of a search.
pub(crate) async fn live_page(searches: &Searches, control: &Control, key: &Key) -> anyhow::Result<Search> {
    let label_selector = if Scope::of(key) == Scope::Jobs { OF_A_JOB } else { "" };
    let selection = Selection { field_selector: LIVE, label_selector, ..Selection::default() };
    let mut targets = Vec::new();
    let each = |pod: Pod| {
        if pod.target.is_some() {
            targets.push(Arc::new(pod));
        }
    };
    let listed = control.list_page(&PODS, selection, Accept::Object, &searches.next(key), each).await;
    searches.note(key, &listed);
    let goes_on = !listed.context("cannot list pods")?.is_empty();
    Ok(Search { key: key.clone(), targets, goes_on })
}
