//! Reads what one sync decides on: the autoscaler and its memory; then, live, the scale of its target; and where
//! metrics decide, those and the pods behind the scale's selector.
//!
//! Pods are listed in each sync and not watched: a sync counts them once in fifteen seconds, together with their
//! metrics, and no stalled watch can make it count pods that are gone.

pub mod kinds;
pub mod metrics;
pub mod scales;
mod words;

use std::sync::Arc;

use serde_json::Value;
use shared::api::object::Key;
use shared::api::resource::Resource;
use shared::api::selector::Selector;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};

use crate::memory::{History, Memory};
use crate::objects::values::{ExternalValue, ObjectValue, PodUsage};
use crate::objects::{HorizontalPodAutoscaler, Pod, Scale};
use kinds::Kinds;

/// An autoscaler before anything is read live.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub autoscaler: Arc<HorizontalPodAutoscaler>,
    pub history: History,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub autoscaler: Arc<HorizontalPodAutoscaler>,
    pub history: History,
    pub scale: Result<ReadScale, ScaleFailure>,
    /// Empty unless metrics decide.
    pub measured: Measured,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReadScale {
    pub resource: Resource,
    pub scale: Scale,
    /// The scale as served, which is written back with another number.
    pub served: Value,
}

/// Why a scale cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleFailure {
    pub message: String,
    /// The same with the step that failed, for the log.
    pub step: String,
    pub is_spec: bool,
}

/// The pods behind a scale's selector, and their metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub pods: Result<Vec<Arc<Pod>>, String>,
    /// The selectors of all autoscalers of the namespace, this one's included.
    pub selectors: Vec<(Key, Selector)>,
    /// The answer for each metric, in the autoscaler's order.
    pub answers: Vec<Answer>,
}

impl Default for Measured {
    fn default() -> Self {
        Self { pods: Ok(Vec::new()), selectors: Vec::new(), answers: Vec::new() }
    }
}

/// The values of one metric, or the error in client-go's words.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Not read, because the metric itself is invalid.
    None,
    /// The usage of the pods' containers; all resource metrics share one answer.
    Usage(Result<Arc<Vec<PodUsage>>, String>),
    /// The values of objects: of one, or of each pod.
    Objects(Result<Vec<ObjectValue>, String>),
    External(Result<Vec<ExternalValue>, String>),
}

pub struct Caches {
    pub horizontal_pod_autoscalers: Arc<Cache<HorizontalPodAutoscaler>>,
    pub memory: Arc<Memory>,
    pub kinds: Kinds,
}

pub(crate) struct Informers {
    pub(crate) horizontal_pod_autoscalers: Informer<HorizontalPodAutoscaler>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let horizontal_pod_autoscalers = InformerBuilder::<HorizontalPodAutoscaler>::new().build();
        let cache = horizontal_pod_autoscalers.cache();
        let memory = Arc::new(Memory::new(Arc::clone(&cache)));
        let caches = Self { horizontal_pod_autoscalers: cache, memory, kinds: Kinds::default() };
        (caches, Informers { horizontal_pod_autoscalers })
    }

    pub fn observe(&self, key: &Key) -> Option<Known> {
        let autoscaler = self.horizontal_pod_autoscalers.get(key)?;
        Some(Known { autoscaler, history: self.memory.history(key) })
    }

    pub(crate) fn start_over(&self) {
        self.memory.start_over();
        self.kinds.start_over();
    }
}
