//! The view of a DaemonSet, and the exact texts that this operator writes.
//!
//! Reading order: [`DaemonSet`] → [`DaemonSetSpec`] → [`placement`] (the nodes that its pods are for) → [`node`] and
//! [`pod`]. The template is kept as the JSON it came in; the few fields of it that decide about nodes are read once.
//! Left out: conditions, of which this controller has none and keeps those of others.

pub mod node;
pub mod placement;
pub mod pod;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shared::api::int_or_percent::{IntOrPercent, Rounding};
use shared::api::labels::Labels;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::selector::{InvalidSelector, LabelSelector, Selector};
use shared::api::template::PodTemplate;
use shared::controllers::live_spec::{Abridged, template_of};
use shared::controllers::revisions::Annotations;
pub use shared::controllers::revisions::REVISION_LABEL;
use shared::controllers::revisions::data::{Numbers, kept};

use placement::Placement;

pub const DAEMON_SETS: Resource = Resource::namespaced("apps", "v1", "DaemonSet", "daemonsets");
/// The label of a pod with the generation of the template that it was made from. It keeps pods from being replaced
/// where hashes are another release's.
pub const GENERATION_LABEL: &str = "pod-template-generation";
/// The annotation in which the apiserver counts the changes of the template.
pub const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

#[derive(Clone, Debug, Deserialize)]
#[serde(from = "RawDaemonSet")]
pub struct DaemonSet {
    /// Its metadata, with all annotations: its revisions get them.
    pub metadata: Meta<Annotations>,
    /// How often its template has changed, as the apiserver counts.
    pub template_generation: Option<i64>,
    pub spec: DaemonSetSpec,
    /// The last written status.
    pub status: DaemonSetStatus,
}

shared::view!(DaemonSet, DAEMON_SETS, Annotations);

impl Abridged for DaemonSet {
    fn left_out(&self) -> usize {
        self.spec.template.left_out()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        let spec = DaemonSetSpec { template: template_of(spec)?, ..self.spec.clone() };
        Ok(Self { spec, ..self.clone() })
    }
}

#[derive(Deserialize)]
struct RawDaemonSet {
    metadata: Meta<Annotations>,
    spec: DaemonSetSpec,
    #[serde(default)]
    status: DaemonSetStatus,
}

impl From<RawDaemonSet> for DaemonSet {
    fn from(RawDaemonSet { metadata, spec, status }: RawDaemonSet) -> Self {
        Self { template_generation: template_generation(&metadata.annotations), metadata, spec, status }
    }
}

/// Upstream: `GetTemplateGeneration`, `pkg/controller/daemon/util/daemonset_util.go`. A text that is no number is none.
fn template_generation(annotations: &Annotations) -> Option<i64> {
    let all: BTreeMap<String, String> = serde_json::from_str(annotations.json()?.get()).ok()?;
    all.get(GENERATION_ANNOTATION)?.parse().ok()
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawSpec")]
pub struct DaemonSetSpec {
    /// The selector of its pods. None selects nothing.
    pub selector: Result<Selector, InvalidSelector>,
    pub template: PodTemplate,
    pub placement: Placement,
    /// How pods of an earlier template are replaced.
    pub update_strategy: UpdateStrategy,
    /// How long a pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    /// How many unused revisions are kept.
    pub revision_history_limit: i32,
}

impl DaemonSetSpec {
    /// Whether its selector is `{}`, which is never meant.
    pub fn selects_everything(&self) -> bool {
        self.selector.as_ref().is_ok_and(Selector::is_empty)
    }

    /// Whether a pod or a revision of these labels is selected; an invalid selector selects none.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_ok_and(|selector| selector.matches(labels))
    }

    /// Whether a node may have two of its pods for a while: an old one, and a new one that gets ready.
    ///
    /// Upstream: `AllowsSurge`, `pkg/controller/daemon/util/daemonset_util.go`.
    pub fn allows_surge(&self) -> bool {
        let surge = self.update_strategy.max_surge().map(|surge| surge.of(1, Rounding::Up));
        surge.is_some_and(|surge| surge.is_ok_and(|surge| surge > 0))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    selector: Option<LabelSelector>,
    #[serde(default, deserialize_with = "PodTemplate::whole")]
    template: PodTemplate,
    #[serde(default)]
    update_strategy: UpdateStrategy,
    #[serde(default)]
    min_ready_seconds: i32,
    revision_history_limit: Option<i32>,
}

impl TryFrom<RawSpec> for DaemonSetSpec {
    type Error = serde_json::Error;

    fn try_from(raw: RawSpec) -> Result<Self, Self::Error> {
        let RawSpec { selector, template, update_strategy, min_ready_seconds, revision_history_limit } = raw;
        Ok(Self {
            selector: selector.as_ref().map_or(Ok(Selector::nothing()), Selector::parse),
            placement: Placement::of(&template)?,
            template: kept(template, Numbers::Integers),
            update_strategy,
            min_ready_seconds,
            // The apiserver's default.
            revision_history_limit: revision_history_limit.unwrap_or(10),
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    #[serde(rename = "type")]
    pub type_: UpdateType,
    /// How, if anything is said about it. The apiserver's defaults say something for every rolling update.
    pub rolling_update: Option<RollingUpdate>,
}

impl UpdateStrategy {
    /// How many nodes may have a pod too many during an update.
    pub fn max_surge(&self) -> Option<&IntOrPercent> {
        match self.type_ {
            UpdateType::OnDelete | UpdateType::Other => None,
            UpdateType::RollingUpdate => self.rolling_update.as_ref()?.max_surge.as_ref(),
        }
    }
}

/// `spec.updateStrategy.type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum UpdateType {
    /// A pod is replaced only after a user has deleted it.
    OnDelete,
    /// Pods are replaced node by node.
    #[default]
    RollingUpdate,
    /// One that this build does not know. As upstream, no pod is replaced.
    #[serde(other)]
    Other,
}

/// `spec.updateStrategy.rollingUpdate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// How many nodes may be without an available pod.
    pub max_unavailable: Option<IntOrPercent>,
    /// How many nodes may have a new pod beside an available old one.
    pub max_surge: Option<IntOrPercent>,
}

/// `status` of a DaemonSet, but for conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    /// How many nodes that it is for have a pod.
    #[serde(deserialize_with = "null_as_default")]
    pub current_number_scheduled: i32,
    /// How many nodes that it is not for have a pod.
    #[serde(deserialize_with = "null_as_default")]
    pub number_misscheduled: i32,
    /// How many nodes it is for.
    #[serde(deserialize_with = "null_as_default")]
    pub desired_number_scheduled: i32,
    /// How many of them have a pod that is ready.
    #[serde(deserialize_with = "null_as_default")]
    pub number_ready: i32,
    #[serde(deserialize_with = "null_as_default")]
    pub observed_generation: i64,
    /// How many of them have a pod of the template of now.
    #[serde(deserialize_with = "null_as_default")]
    pub updated_number_scheduled: i32,
    /// How many of them have a pod that has been ready for `minReadySeconds`.
    #[serde(deserialize_with = "null_as_default")]
    pub number_available: i32,
    /// How many of them have none.
    #[serde(deserialize_with = "null_as_default")]
    pub number_unavailable: i32,
    /// How often the name of a new revision was taken. It is written on its own.
    #[serde(skip_serializing)]
    pub collision_count: Option<i32>,
}
