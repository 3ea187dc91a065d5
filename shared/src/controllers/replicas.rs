//! Keeping a number of pods alike: what ReplicaSets and ReplicationControllers share, in parts Jobs too.
//!
//! Reading order: [`pod`] (the view) → [`ReplicaOwner`] and [`Observed`] → [`plan`] (what to do) → [`status`] (what came
//! of it); these are pure. Around them: [`caches`] (whom a change concerns), [`apply`] (the writes) and
//! [`sync`] (the wiring). Left out: the kinds themselves, which are their operators'.

pub mod apply;
pub mod caches;
#[cfg(test)]
mod fixtures;
pub mod plan;
pub mod pod;
pub mod status;
pub mod sync;

use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use crate::api::labels::Labels;
use crate::api::object::Kind;
use crate::api::selector::{InvalidSelector, Selector};
use crate::api::template::PodTemplate;
use crate::runtime::expectations::Outstanding;
use pod::Pod;
use status::ReplicaStatus;

/// A kind that keeps a number of pods.
pub trait ReplicaOwner: Kind {
    /// Whether its status has terminatingReplicas.
    const COUNTS_TERMINATING: bool;

    /// What it asks for.
    fn spec(&self) -> &ReplicaSpec;

    /// What was last written of it.
    fn status(&self) -> &ReplicaStatus;
}

/// What an owner asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSpec {
    /// How many pods.
    pub replicas: i32,
    /// How long a pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    /// Which pods are its own.
    pub selector: Result<Selector, InvalidSelector>,
    /// How its pods are made.
    pub template: PodTemplate,
    /// The labels they are made with.
    pub template_labels: Labels,
}

impl ReplicaSpec {
    /// Whether a pod of these labels is selected; an invalid selector selects none.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_ok_and(|selector| selector.matches(labels))
    }

    /// Whether every pod is selected, which is never meant.
    pub fn selects_everything(&self) -> bool {
        self.selector.as_ref().is_ok_and(Selector::is_empty)
    }

    /// Reads the spec of a kind whose selector is a `metav1.LabelSelector`.
    pub fn with_label_selector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawSpec::deserialize(deserializer).map(|raw| raw.compile(Selector::parse))
    }

    /// Reads the spec of a kind whose selector is a plain map.
    pub fn with_map_selector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawSpec::deserialize(deserializer).map(|raw| raw.compile(|labels| Ok(Selector::from_labels(labels))))
    }

    /// `replicas`; none if it is negative, which the apiserver does not let through.
    pub fn wanted(&self) -> usize {
        usize::try_from(self.replicas).unwrap_or(0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec<S> {
    replicas: Option<i32>,
    #[serde(default)]
    min_ready_seconds: i32,
    selector: Option<S>,
    template: PodTemplate,
}

impl<S> RawSpec<S> {
    fn compile(self, compile: impl Fn(&S) -> Result<Selector, InvalidSelector>) -> ReplicaSpec {
        let Self { replicas, min_ready_seconds, selector, template } = self;
        ReplicaSpec {
            // The apiserver's default.
            replicas: replicas.unwrap_or(1),
            min_ready_seconds,
            selector: selector.as_ref().map_or(Ok(Selector::nothing()), compile),
            template_labels: template.labels(),
            template,
        }
    }
}

/// All that one sync decides on.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed<T> {
    /// Who keeps the pods.
    pub owner: Arc<T>,
    /// The pods whose controller it is, and those of its namespace that have none.
    pub pods: Vec<Arc<Pod>>,
    /// The pods of all owners under the same controller, to tell which nodes hold several; read only if one must go.
    pub related: Vec<Arc<Pod>>,
    /// What it asked for and has not seen: until then its pods are not counted.
    pub outstanding: Option<Outstanding>,
}

/// What came of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The pods that count: those that were owned, and those that were adopted. What was created or deleted in the same
    /// sync has not been seen yet and changes nothing here.
    pub claimed: Vec<Arc<Pod>>,
    /// The error of a creation or deletion, if one failed.
    pub failure: Option<String>,
}
