//! The views of a Deployment, a ReplicaSet and a pod: the fields this operator reads, and the exact texts it writes.
//!
//! The template and the selector, which are handed on, are kept as the JSON they came in. Left out: everything a pod is
//! besides being there or not.

mod status;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use shared::api::condition::Condition;
use shared::api::int_or_percent::IntOrPercent;
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::{Meta, Uid, null_as_default};
use shared::api::resource::{DEPLOYMENTS, REPLICA_SETS};
use shared::api::selector::{LabelSelector, Selector};
use shared::api::template::PodTemplate;
use shared::controllers::live_spec::{Abridged, template_of};

pub use status::{DeploymentStatus, StatusPatch};

pub mod annotations {
    /// On a ReplicaSet its place in the history; on a Deployment the one of its new ReplicaSet.
    pub const REVISION: &str = "deployment.kubernetes.io/revision";
    /// The revisions a ReplicaSet had before, oldest first, with commas between.
    pub const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
    /// The size of the Deployment when a ReplicaSet was last scaled: another one now is a scaling event.
    pub const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
    /// The size with surge when a ReplicaSet was last scaled: what its share is a share of.
    pub const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
    /// The revision to roll back to; 0 is the one before.
    pub const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
    /// The annotation of `kubectl apply`. It is never copied, and too large to be kept in memory.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

    /// Whether an annotation stays where it is when others are copied between a Deployment and a ReplicaSet.
    ///
    /// Upstream: `skipCopyAnnotation`, `pkg/controller/deployment/util/deployment_util.go`.
    pub fn is_skipped(key: &str) -> bool {
        [REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO, LAST_APPLIED].contains(&key)
    }
}

pub mod conditions {
    pub const AVAILABLE: &str = "Available";
    pub const PROGRESSING: &str = "Progressing";
    /// A ReplicaSet cannot create or delete pods; the same word on both kinds.
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";
}

pub mod reasons {
    /// `Progressing`: a ReplicaSet got further.
    pub const REPLICA_SET_UPDATED: &str = "ReplicaSetUpdated";
    /// `Progressing`, and an event: the new ReplicaSet cannot be created.
    pub const REPLICA_SET_CREATE_ERROR: &str = "ReplicaSetCreateError";
    /// `Progressing`: the new ReplicaSet was created.
    pub const NEW_REPLICA_SET_CREATED: &str = "NewReplicaSetCreated";
    /// `Progressing`: there was a ReplicaSet of the template already.
    pub const FOUND_NEW_REPLICA_SET: &str = "FoundNewReplicaSet";
    /// `Progressing`: the rollout is complete.
    pub const NEW_REPLICA_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
    /// `Progressing`: nothing got further within the deadline.
    pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// `Progressing`: paused.
    pub const DEPLOYMENT_PAUSED: &str = "DeploymentPaused";
    /// `Progressing`: no longer paused.
    pub const DEPLOYMENT_RESUMED: &str = "DeploymentResumed";
    /// `Available`.
    pub const MINIMUM_REPLICAS_AVAILABLE: &str = "MinimumReplicasAvailable";
    /// Not `Available`.
    pub const MINIMUM_REPLICAS_UNAVAILABLE: &str = "MinimumReplicasUnavailable";
    /// An event: a ReplicaSet was scaled.
    pub const SCALING_REPLICA_SET: &str = "ScalingReplicaSet";
    /// An event: the selector is empty.
    pub const SELECTING_ALL: &str = "SelectingAll";
    /// An event: no ReplicaSet has the revision.
    pub const ROLLBACK_REVISION_NOT_FOUND: &str = "DeploymentRollbackRevisionNotFound";
    /// An event: the revision has the same template.
    pub const ROLLBACK_TEMPLATE_UNCHANGED: &str = "DeploymentRollbackTemplateUnchanged";
    /// An event: rolled back.
    pub const ROLLBACK: &str = "DeploymentRollback";
}

/// All annotations but `kubectl`'s memory; equal sets are one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations(Labels);

impl Annotations {
    pub fn new<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(Labels::new(pairs))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)
    }

    /// All pairs by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter()
    }
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Annotations;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Annotations, M::Error> {
                let mut pairs: Vec<(String, String)> = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    if key == annotations::LAST_APPLIED {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        pairs.push((key, map.next_value()?));
                    }
                }
                Ok(Annotations::new(pairs))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Box<RawValue>);

impl Json {
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct Deployment {
    pub metadata: Meta<Annotations>,
    pub spec: DeploymentSpec,
    /// The last written status.
    #[serde(default)]
    pub status: DeploymentStatus,
}

impl Deployment {
    /// Whether its selector is there but says nothing, so that it would select every pod.
    pub fn selects_everything(&self) -> bool {
        self.spec.selector.text() == "{}"
    }

    /// Which ReplicaSets it selects; none if it has no selector.
    pub fn selector(&self) -> anyhow::Result<Selector> {
        let selector: Option<LabelSelector> = serde_json::from_str(self.spec.selector.text())?;
        selector.map_or_else(|| Ok(Selector::nothing()), |selector| Ok(Selector::parse(&selector)?))
    }
}

shared::view!(Deployment, DEPLOYMENTS, Annotations);

impl Abridged for Deployment {
    fn left_out(&self) -> usize {
        self.spec.template.left_out()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        let spec = DeploymentSpec { template: template_of(spec)?, ..self.spec.clone() };
        Ok(Self { spec, ..self.clone() })
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    #[serde(default = "one")]
    pub replicas: i32,
    #[serde(default)]
    pub selector: Json,
    #[serde(default)]
    pub template: PodTemplate,
    /// How one template takes the place of another.
    #[serde(default)]
    pub strategy: Strategy,
    /// How long a pod is ready before it is available, in seconds.
    #[serde(default)]
    pub min_ready_seconds: i32,
    /// How many old ReplicaSets are kept.
    #[serde(default)]
    pub revision_history_limit: Option<i32>,
    #[serde(default)]
    pub paused: bool,
    /// How long a rollout may stand still, in seconds.
    #[serde(default)]
    pub progress_deadline_seconds: Option<i32>,
}

fn one() -> i32 {
    1
}

/// How one template takes the place of another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "RawStrategy")]
pub enum Strategy {
    RollingUpdate {
        /// How many pods there may be more than asked for.
        max_surge: Option<IntOrPercent>,
        /// How many pods may be unavailable.
        max_unavailable: Option<IntOrPercent>,
    },
    /// All old pods go before the first new one comes.
    Recreate,
    /// A type this build does not know.
    Unknown(Text),
}

impl Default for Strategy {
    fn default() -> Self {
        RawStrategy::default().into()
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStrategy {
    #[serde(rename = "type")]
    type_: Text,
    rolling_update: Option<RawRollingUpdate>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawRollingUpdate {
    max_surge: Option<IntOrPercent>,
    max_unavailable: Option<IntOrPercent>,
}

impl From<RawStrategy> for Strategy {
    fn from(raw: RawStrategy) -> Self {
        let RawRollingUpdate { max_surge, max_unavailable } = raw.rolling_update.unwrap_or_default();
        match raw.type_.as_str() {
            "RollingUpdate" => Self::RollingUpdate { max_surge, max_unavailable },
            "Recreate" => Self::Recreate,
            _ => Self::Unknown(raw.type_),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ReplicaSet {
    pub metadata: Meta<Annotations>,
    pub spec: ReplicaSetSpec,
    /// The status that its own controller last wrote.
    #[serde(default)]
    pub status: ReplicaSetStatus,
}

impl ReplicaSet {
    /// Its place by age: older before younger, and by name where that is equal.
    ///
    /// Upstream: `ReplicaSetsByCreationTimestamp`, `pkg/controller/controller_utils.go`.
    pub fn age(&self) -> impl Ord + use<'_> {
        (self.metadata.creation, self.metadata.name())
    }

    pub fn is_active(&self) -> bool {
        self.spec.replicas > 0
    }

    /// Whether it may have pods that have not ended, terminating ones included; none where its status leaves that open.
    ///
    /// A status of an older generation knows nothing of what was asked for since. Only newer servers keep how many pods
    /// terminate.
    pub fn may_run_pods(&self) -> Option<bool> {
        let ReplicaSetStatus { observed_generation, replicas, terminating_replicas, .. } = self.status;
        if observed_generation < self.metadata.generation || replicas > 0 {
            return Some(true);
        }
        terminating_replicas.map(|terminating| terminating > 0)
    }
}

shared::view!(ReplicaSet, REPLICA_SETS, Annotations);

impl Abridged for ReplicaSet {
    fn left_out(&self) -> usize {
        self.spec.template.left_out()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        let spec = ReplicaSetSpec { template: template_of(spec)?, ..self.spec.clone() };
        Ok(Self { spec, ..self.clone() })
    }
}

/// A ReplicaSet's spec, but for its selector.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSetSpec {
    #[serde(default = "one")]
    pub replicas: i32,
    /// How long a pod is ready before it is available, in seconds.
    #[serde(default)]
    pub min_ready_seconds: i32,
    #[serde(default)]
    pub template: PodTemplate,
}

/// A ReplicaSet's status, but for the fully labelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetStatus {
    pub observed_generation: i64,
    /// Pods that are not terminating.
    pub replicas: i32,
    pub ready_replicas: i32,
    pub available_replicas: i32,
    pub terminating_replicas: Option<i32>,
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Box<[Condition]>,
}

/// A pod that has not ended, as a list gives it.
#[derive(Debug, Deserialize)]
pub struct Pod {
    metadata: Meta,
}

impl Pod {
    pub fn controller_uid(&self) -> Option<Uid> {
        self.metadata.controller_uid()
    }

    /// Since when it has been ending; none if it is not to end. Its deletionTimestamp is when its grace is over.
    pub fn ending_since(&self) -> Option<Timestamp> {
        let grace = u64::try_from(self.metadata.deletion_grace_seconds).unwrap_or(0);
        self.metadata.deletion?.timestamp().checked_sub(Duration::from_secs(grace)).ok()
    }
}
