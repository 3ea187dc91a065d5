//! Reads everything that one sync decides on: the autoscaler and what is remembered of it; then, live, the scale of its
//! target; and where metrics decide, those and the pods behind the scale's selector.
//!
//! Pods are read in each sync and not followed: a sync counts them once in fifteen seconds, at the same moment as their
//! metrics, and there is no watch that could stand still. Left out: pods that no scale selects.

pub mod history;
pub mod kinds;
pub mod metrics;
pub mod scales;
pub mod selectors;
mod words;

use std::sync::Arc;

use serde_json::Value;
use shared::api::object::Key;
use shared::api::resource::Resource;
use shared::api::selector::Selector;
use shared::runtime::cache::{Cache, Change};
use shared::runtime::informer::{Informer, InformerBuilder};

use crate::objects::values::{ExternalValue, ObjectValue, PodUsage};
use crate::objects::{HorizontalPodAutoscaler, Pod, Scale};
use history::{Histories, History};
use kinds::Kinds;
use selectors::Selectors;

/// An autoscaler, before anything is read live.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The autoscaler.
    pub autoscaler: Arc<HorizontalPodAutoscaler>,
    /// Its earlier recommendations, and how it was scaled of late.
    pub history: History,
}

/// All that one sync decides on.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The autoscaler.
    pub autoscaler: Arc<HorizontalPodAutoscaler>,
    /// Its earlier recommendations, and how it was scaled of late.
    pub history: History,
    /// The scale of its target.
    pub scale: Result<ReadScale, ScaleFailure>,
    /// The pods and the metrics, where they decide; otherwise nothing.
    pub measured: Measured,
}

/// A scale that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadScale {
    /// The target's resource.
    pub resource: Resource,
    /// The scale.
    pub scale: Scale,
    /// The same as it was served: it goes back with another number in it.
    pub served: Value,
}

/// Why there is no scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleFailure {
    /// The error, as people are told of it.
    pub message: String,
    /// The step that failed, for the log.
    pub step: String,
    /// Whether the autoscaler itself is wrong.
    pub is_spec: bool,
}

/// The pods behind a scale's selector, and what is known of their load.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The pods, by key.
    pub pods: Result<Vec<Arc<Pod>>, String>,
    /// The selectors of all autoscalers of the namespace, as each was last read; its own is among them.
    pub selectors: Vec<(Key, Selector)>,
    /// The answer for each metric, in the autoscaler's order.
    pub answers: Vec<Answer>,
}

impl Default for Measured {
    fn default() -> Self {
        Self { pods: Ok(Vec::new()), selectors: Vec::new(), answers: Vec::new() }
    }
}

/// The values of one metric, or the error, in client-go's words.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nobody could be asked: the metric itself is wrong.
    None,
    /// What the containers of the pods take: one answer for all metrics of resources.
    Usage(Result<Arc<Vec<PodUsage>>, String>),
    /// The values of objects: of one, or of each pod.
    Objects(Result<Vec<ObjectValue>, String>),
    /// The values from outside.
    External(Result<Vec<ExternalValue>, String>),
}

/// The cache of this operator, and its memory between syncs.
pub struct Caches {
    /// All autoscalers.
    pub horizontal_pod_autoscalers: Arc<Cache<HorizontalPodAutoscaler>>,
    /// Recommendations and changes of late.
    pub histories: Histories,
    /// The selectors of the targets, as they were last read.
    pub selectors: Selectors,
    /// Where kinds and metrics are served.
    pub kinds: Kinds,
}

/// The informer that fills the cache.
pub(crate) struct Informers {
    pub(crate) horizontal_pod_autoscalers: Informer<HorizontalPodAutoscaler>,
}

impl Caches {
    /// An empty cache, and the informer that fills it.
    pub(crate) fn new() -> (Self, Informers) {
        let horizontal_pod_autoscalers = InformerBuilder::<HorizontalPodAutoscaler>::new().build();
        let caches = Self {
            horizontal_pod_autoscalers: horizontal_pod_autoscalers.cache(),
            histories: Histories::default(),
            selectors: Selectors::default(),
            kinds: Kinds::default(),
        };
        (caches, Informers { horizontal_pod_autoscalers })
    }

    /// Reads the autoscaler of this key; none if it is gone.
    pub fn observe(&self, key: &Key) -> Option<Known> {
        let autoscaler = self.horizontal_pod_autoscalers.get(key)?;
        Some(Known { autoscaler, history: self.histories.of(key) })
    }

    /// Forgets what is remembered of an autoscaler that is gone.
    pub(crate) fn note(&self, change: &Change<'_, HorizontalPodAutoscaler>) {
        match change {
            Change::Added(_) | Change::Updated { .. } => {}
            Change::Deleted(autoscaler) => {
                self.histories.forget(&autoscaler.metadata.key);
                self.selectors.forget(&autoscaler.metadata.key);
            }
        }
    }

    /// Forgets all: of a restored etcd nothing was seen here.
    pub(crate) fn start_over(&self) {
        self.histories.start_over();
        self.selectors.start_over();
        self.kinds.start_over();
    }
}
