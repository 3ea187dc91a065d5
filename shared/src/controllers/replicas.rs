//! Keeping a number of pods alike: what ReplicaSets and ReplicationControllers share, in parts Jobs too.
//!
//! Reading order: [`pod`] (the view) → [`ReplicaOwner`] → [`observe`] → [`plan`] (what to do) → [`apply`] (the writes)
//! → [`status`] (what came of it). Around them: [`changes`] (whom a change concerns) and [`sync`] (the wiring). Left
//! out: the kinds themselves, which are their operators'.

pub mod apply;
pub mod changes;
#[cfg(test)]
mod fixtures;
pub mod memory;
pub mod observe;
pub mod plan;
pub mod pod;
pub mod status;
mod stored;
pub mod sync;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::api::labels::Labels;
use crate::api::object::Kind;
use crate::api::selector::{InvalidSelector, Selector};
use crate::api::template::PodTemplate;
use crate::controllers::live_spec::{Abridged, template_of};
use stored::ReplicaStatus;

/// A kind that keeps a number of pods.
pub trait ReplicaOwner: Kind + Clone {
    /// Whether its status has terminatingReplicas.
    const COUNTS_TERMINATING: bool;
    /// Whether of its surplus those pods go first that share a node with others of owners under the same controller.
    const RANKS_RELATED: bool;
    /// Whether most namespaces have one, so that one watch follows the pods of all.
    const ARE_COMMON: bool;

    /// The spec.
    fn spec(&self) -> &ReplicaSpec;

    /// The same with another spec.
    #[must_use]
    fn with_spec(&self, spec: ReplicaSpec) -> Self;

    /// The last written status.
    fn status(&self) -> &ReplicaStatus;
}

impl<T: ReplicaOwner> Abridged for T {
    fn left_out(&self) -> usize {
        self.spec().template.left_out()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        Ok(self.with_spec(ReplicaSpec { template: template_of(spec)?, ..self.spec().clone() }))
    }
}

/// The spec of an owner.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSpec {
    /// How many pods.
    pub replicas: i32,
    /// How long a pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    /// The selector of its pods.
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
