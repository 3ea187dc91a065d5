//! Reads pages of pods, for those that something outside of them was to end.
//!
//! Pods of namespaces with a budget are followed, and each such condition is seen at once. All others are searched now
//! and then: a condition that nobody takes back makes a difference only to a Job, which forgives a disrupted pod's
//! failure, so the pods of Jobs are searched often and all others seldom. A page of them a minute is read, so that no minute
//! costs much.
//! Left out: pods that have ended. Their conditions stay.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use shared::api::object::Key;
use shared::api::pod::LIVE;
use shared::api::resource::PODS;
use shared::runtime::api_error::ApiError;
use shared::runtime::client::Accept;
use shared::runtime::control::{Control, Selection};

use crate::objects::Pod;

/// The label of every pod of a Job.
const OF_A_JOB: &str = "batch.kubernetes.io/controller-uid";

/// The pods that a page of a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The key of the search.
    pub key: Key,
    /// Those that something outside of them is said to end.
    pub targets: Vec<Arc<Pod>>,
    /// Whether there are more pages.
    pub goes_on: bool,
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

    /// How long after the end of one search the next one begins.
    pub(crate) fn period(self) -> Duration {
        match self {
            Self::Jobs => Duration::from_mins(5),
            Self::All => Duration::from_mins(60),
        }
    }

    /// How long after one page the next one is read.
    pub(crate) fn pause(self) -> Duration {
        match self {
            Self::Jobs => Duration::from_secs(1),
            Self::All => Duration::from_mins(1),
        }
    }
}

/// The token of the next page of each search that is not at its end.
#[derive(Default)]
pub struct Searches(Mutex<HashMap<Key, String>>);

impl Searches {
    /// Reads the next page of the search of this key. After an error that is the same one again, or the first one where
    /// the apiserver no longer knows the token.
    pub(crate) async fn live_page(&self, control: &Control, key: &Key) -> anyhow::Result<Search> {
        let token = self.tokens().get(key).cloned().unwrap_or_default();
        let label_selector = if Scope::of(key) == Scope::Jobs { OF_A_JOB } else { "" };
        let selection = Selection { field_selector: LIVE, label_selector, ..Selection::default() };
        let mut targets = Vec::new();
        let each = |pod: Pod| {
            if pod.target.is_some() {
                targets.push(Arc::new(pod));
            }
        };
        let listed = control.list_page(&PODS, selection, Accept::Object, &token, each).await;
        self.note(key, &listed);
        let goes_on = !listed.context("list pods")?.is_empty();
        Ok(Search { key: key.clone(), targets, goes_on })
    }

    fn note(&self, key: &Key, listed: &Result<String, ApiError>) {
        match listed {
            Ok(next) if !next.is_empty() => {
                self.tokens().insert(key.clone(), next.clone());
            }
            Err(error) if !error.is_gone() => {}
            Ok(_) | Err(_) => {
                self.tokens().remove(key);
            }
        }
    }

    /// Begins all anew: tokens are of a history that is no more.
    pub fn start_over(&self) {
        self.tokens().clear();
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<Key, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
