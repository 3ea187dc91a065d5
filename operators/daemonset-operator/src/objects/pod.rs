//! The view of a Pod: its node, its readiness, its revision.
//!
//! Left out: everything else of its spec. Of its affinity the node is read that it is pinned to, until it is bound.

use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{Meta, NoAnnotations, null_as_default};
use shared::api::pod::{Conditions, Phase, PodView, Readiness};
use shared::api::resource::PODS;
use shared::api::selector::LabelSelectorRequirement;

use super::placement::{IN, NAME_FIELD, RawAffinity};
use super::{GENERATION_LABEL, REVISION_LABEL};

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    /// The node that it is on, or will be.
    pub place: Place,
    pub phase: Phase,
    pub readiness: Readiness,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Bound(Text),
    /// The scheduler may bind it to this one only.
    Pinned(Text),
    Nowhere,
}

impl Pod {
    /// The node that it is on, or will be.
    ///
    /// Upstream: `GetTargetNodeName`, `pkg/controller/daemon/util/daemonset_util.go`.
    pub fn node(&self) -> Option<&Text> {
        match &self.place {
            Place::Bound(node) | Place::Pinned(node) => Some(node),
            Place::Nowhere => None,
        }
    }

    pub fn is_bound(&self) -> bool {
        matches!(self.place, Place::Bound(_))
    }

    pub fn has_hash(&self, hash: &str) -> bool {
        self.metadata.labels.get(REVISION_LABEL) == Some(hash)
    }

    /// Whether it was made from the template of now: by the hash, or by the generation where a hash is another
    /// release's.
    ///
    /// Upstream: `IsPodUpdated`, `daemonset_util.go`.
    pub fn is_updated(&self, hash: &str, generation: Option<i64>) -> bool {
        let is_of = |generation: i64| {
            self.metadata.labels.get(GENERATION_LABEL).is_some_and(|label| label == generation.to_string())
        };
        (!hash.is_empty() && self.has_hash(hash)) || generation.is_some_and(is_of)
    }

    /// Whether it has ended and is being deleted: it counts no more, and only its revision is still in use.
    pub fn is_past(&self) -> bool {
        self.phase.is_terminal() && self.metadata.is_being_deleted()
    }

    /// Whether both states of one pod lead to the same decisions.
    pub fn is_alike(&self, other: &Self) -> bool {
        let Self { metadata, place, phase, readiness } = self;
        let meta = |meta: &Meta<NoAnnotations>| {
            let Meta { labels, deletion, controller, .. } = meta;
            (labels.clone(), *deletion, controller.clone())
        };
        meta(metadata) == meta(&other.metadata)
            && (place, phase, readiness) == (&other.place, &other.phase, &other.readiness)
    }

    #[must_use]
    pub fn with_hash(&self, hash: &str) -> Self {
        let labels = self.metadata.labels.with(REVISION_LABEL, hash);
        Self { metadata: Meta { labels, ..self.metadata.clone() }, ..self.clone() }
    }
}

shared::view!(Pod, PODS);

impl PodView for Pod {
    fn phase(&self) -> Phase {
        self.phase
    }
    fn readiness(&self) -> Readiness {
        self.readiness
    }
}

#[derive(Deserialize)]
struct Raw {
    metadata: Meta,
    #[serde(default)]
    spec: RawSpec,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    node_name: Text,
    affinity: Option<RawAffinity<RawTerm>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTerm {
    #[serde(deserialize_with = "null_as_default")]
    match_fields: Vec<LabelSelectorRequirement>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawStatus {
    phase: Phase,
    conditions: Conditions,
}

impl RawSpec {
    /// The first requirement of the name decides, and only if it leaves one node.
    fn place(self) -> Place {
        let Self { node_name, affinity } = self;
        if !node_name.is_empty() {
            return Place::Bound(node_name);
        }
        let terms = affinity.and_then(RawAffinity::required).unwrap_or_default();
        let is_of_name = |wanted: &LabelSelectorRequirement| wanted.key == NAME_FIELD && wanted.operator == IN;
        let named = terms.into_iter().flat_map(|term| term.match_fields).find(is_of_name);
        match named.as_ref().map(|wanted| &*wanted.values) {
            Some([node]) => Place::Pinned(node.clone()),
            Some(_) | None => Place::Nowhere,
        }
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec, status } = Raw::deserialize(deserializer)?;
        Ok(Self { metadata, place: spec.place(), phase: status.phase, readiness: status.conditions.readiness })
    }
}
