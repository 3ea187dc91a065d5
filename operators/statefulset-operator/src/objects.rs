//! The view of a StatefulSet, and the exact texts that this operator writes.
//!
//! Reading order: [`StatefulSet`] → [`StatefulSetSpec`] → [`pod`] and [`claim`] (its pods and their claims). The
//! templates of pods and claims are kept as the JSON they came in.
//! Left out: conditions, of which this controller has none and removes those of others.

pub mod claim;
pub mod names;
pub mod pod;
pub mod revision;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use shared::api::int_or_percent::IntOrPercent;
use shared::api::intern::Text;
use shared::api::kept::{Digest, KEPT_BYTES_MAX, Kept};
use shared::api::labels::Labels;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::selector::{InvalidSelector, LabelSelector, Selector};
use shared::api::template::PodTemplate;
use shared::controllers::live_spec::Abridged;
use shared::controllers::revisions::Annotations;
pub use shared::controllers::revisions::REVISION_LABEL;
use shared::controllers::revisions::data::{Numbers, kept};

pub const STATEFUL_SETS: Resource = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");
pub const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
pub const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
/// The annotation by which a StatefulSet asks that pods which keep it stuck are replaced. It is this operator's own:
/// upstream leaves such pods to people.
pub const REPLACE_STUCK_PODS: &str = "statefulset.operators.local/replace-stuck-pods";

#[derive(Clone, Debug, Deserialize)]
pub struct StatefulSet {
    /// Its metadata, with all annotations: its revisions get them.
    pub metadata: Meta<Annotations>,
    pub spec: StatefulSetSpec,
    /// The last written status.
    #[serde(default)]
    pub status: StatefulSetStatus,
}

shared::view!(StatefulSet, STATEFUL_SETS, Annotations);

impl Abridged for StatefulSet {
    fn left_out(&self) -> usize {
        let claims = self.spec.volume_claim_templates.iter();
        self.spec.template.left_out() + claims.map(|template| template.json.left_out()).sum::<usize>()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        let spec = serde_json::from_str::<RawSpec>(spec.get())?.into();
        Ok(Self { spec, ..self.clone() })
    }
}

impl StatefulSet {
    /// Whether it asks that pods which keep it stuck are replaced; any other value than `true` does not.
    pub fn replaces_stuck_pods(&self) -> bool {
        self.metadata.annotations.get(REPLACE_STUCK_PODS).as_deref() == Some("true")
    }
}

#[derive(Clone, Debug)]
pub struct StatefulSetSpec {
    pub replicas: i32,
    /// The ordinal of the first one.
    pub start: i32,
    /// The selector of its pods. None selects nothing.
    pub selector: Result<Selector, InvalidSelector>,
    /// The labels that the selector asks for, which its claims get.
    pub match_labels: Labels,
    pub template: PodTemplate,
    /// A claim of each of these is made for each pod.
    pub volume_claim_templates: Box<[ClaimTemplate]>,
    /// The subdomain of its pods; `""` for none.
    pub service_name: Text,
    pub pod_management_policy: PodManagementPolicy,
    /// How pods of an earlier template are replaced.
    pub update_strategy: UpdateStrategy,
    /// How many unused revisions are kept; below 0 all.
    pub revision_history_limit: i32,
    /// How long a pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    pub claim_retention: ClaimRetention,
}

impl StatefulSetSpec {
    /// The ordinals of the pods that are asked for.
    ///
    /// Upstream: `getStartOrdinal` and `getEndOrdinal`, `pkg/controller/statefulset/stateful_set_utils.go`.
    pub fn ordinals(&self) -> std::ops::Range<i64> {
        let start = i64::from(self.start);
        start..start + i64::from(self.replicas.max(0))
    }

    /// The first ordinal whose pod is of the update revision, by the partition.
    pub fn partition_start(&self) -> i64 {
        let partition = self.update_strategy.rolling_update.as_ref().map_or(0, |rolling| rolling.partition);
        i64::from(self.start) + i64::from(partition)
    }

    pub fn has_claim_template(&self, name: &str) -> bool {
        self.volume_claim_templates.iter().any(|template| *template.name == *name)
    }
}

impl<'de> Deserialize<'de> for StatefulSetSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut spec: Self = RawSpec::deserialize(deserializer)?.into();
        spec.template = kept(spec.template, Numbers::Floats);
        let claims = &mut spec.volume_claim_templates;
        let bytes: usize = claims.iter().filter_map(ClaimTemplate::json).map(|json| json.get().len()).sum();
        if bytes > KEPT_BYTES_MAX {
            claims.iter_mut().for_each(ClaimTemplate::leave_out);
        }
        Ok(spec)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    replicas: Option<i32>,
    selector: Option<LabelSelector>,
    #[serde(default, deserialize_with = "PodTemplate::whole")]
    template: PodTemplate,
    #[serde(default, deserialize_with = "null_as_default")]
    volume_claim_templates: Box<[ClaimTemplate]>,
    #[serde(default)]
    service_name: Text,
    #[serde(default)]
    pod_management_policy: PodManagementPolicy,
    #[serde(default)]
    update_strategy: UpdateStrategy,
    revision_history_limit: Option<i32>,
    #[serde(default)]
    min_ready_seconds: i32,
    persistent_volume_claim_retention_policy: Option<ClaimRetention>,
    ordinals: Option<RawOrdinals>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawOrdinals {
    start: i32,
}

impl From<RawSpec> for StatefulSetSpec {
    fn from(raw: RawSpec) -> Self {
        let RawSpec {
            replicas,
            selector,
            template,
            volume_claim_templates,
            service_name,
            pod_management_policy,
            update_strategy,
            revision_history_limit,
            min_ready_seconds,
            persistent_volume_claim_retention_policy,
            ordinals,
        } = raw;
        Self {
            // The apiserver's defaults.
            replicas: replicas.unwrap_or(1),
            revision_history_limit: revision_history_limit.unwrap_or(10),
            start: ordinals.unwrap_or_default().start,
            match_labels: selector.as_ref().map(|selector| selector.match_labels.clone()).unwrap_or_default(),
            selector: selector.as_ref().map_or(Ok(Selector::nothing()), Selector::parse),
            template,
            volume_claim_templates,
            service_name,
            pod_management_policy,
            update_strategy,
            min_ready_seconds,
            claim_retention: persistent_volume_claim_retention_policy.unwrap_or_default(),
        }
    }
}

/// One of `spec.volumeClaimTemplates`.
#[derive(Clone)]
pub struct ClaimTemplate {
    /// Its name, which is that of the volume too.
    pub name: Text,
    json: Kept,
}

impl ClaimTemplate {
    /// All of it, unless the cache had no room for it.
    pub fn json(&self) -> Option<&RawValue> {
        self.json.whole()
    }

    fn leave_out(&mut self) {
        if let Kept::Whole(json) = &self.json {
            self.json = Kept::Digest(Digest::of(json.get()));
        }
    }
}

impl fmt::Debug for ClaimTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl<'de> Deserialize<'de> for ClaimTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Outline {
            metadata: Named,
        }
        #[derive(Deserialize)]
        struct Named {
            name: Text,
        }
        let json: Box<RawValue> = Deserialize::deserialize(deserializer)?;
        let outline: Outline = serde_json::from_str(json.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { name: outline.metadata.name, json: Kept::Whole(json) })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PodManagementPolicy {
    /// All pods are created and deleted at once.
    Parallel,
    /// One after the other: each waits for those before it. Unknown policies count as this one, as upstream.
    #[default]
    #[serde(other)]
    OrderedReady,
}

impl PodManagementPolicy {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parallel => "Parallel",
            Self::OrderedReady => "OrderedReady",
        }
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

/// `spec.updateStrategy.type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum UpdateType {
    /// A pod is replaced only after a user has deleted it.
    OnDelete,
    /// Pods are replaced one after the other. Unknown types count as this one, as upstream.
    #[default]
    #[serde(other)]
    RollingUpdate,
}

/// `spec.updateStrategy.rollingUpdate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// How many of the first pods keep the current revision.
    #[serde(deserialize_with = "null_as_default")]
    pub partition: i32,
    /// How many pods may be unavailable at a time.
    pub max_unavailable: Option<IntOrPercent>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimRetention {
    pub when_deleted: Retention,
    /// Whether a pod's claims are deleted when that pod is one too many.
    pub when_scaled: Retention,
}

impl ClaimRetention {
    pub fn retains_all(self) -> bool {
        self == Self::default()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Retention {
    Delete,
    /// It stays. Unknown policies count as this one, as upstream.
    #[default]
    #[serde(other)]
    Retain,
}

/// `status` of a StatefulSet, but for conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetStatus {
    pub observed_generation: i64,
    /// How many pods there are.
    pub replicas: i32,
    /// How many of them run and are ready.
    pub ready_replicas: i32,
    /// How many of them have been ready for `minReadySeconds`.
    pub available_replicas: i32,
    /// How many are of the current revision, and not being deleted.
    pub current_replicas: i32,
    /// How many are of the update revision, and not being deleted.
    pub updated_replicas: i32,
    /// The revision of pods that are not updated yet.
    pub current_revision: Text,
    pub update_revision: Text,
    /// How often the name of a new revision was taken.
    pub collision_count: Option<i32>,
}
