//! The view of a Job, and the texts that this operator writes.
//!
//! Reading order: [`Job`] → [`JobSpec`] → [`status`] → [`pod`].

pub mod pod;
pub mod status;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::JOBS;
use shared::api::selector::{InvalidSelector, LabelSelector, Selector};
use shared::api::template::PodTemplate;
use shared::controllers::live_spec::{Abridged, template_of};

use status::JobStatus;

/// The finalizer that keeps a pod until it is counted.
pub const JOB_TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The label with the Job's uid that the apiserver adds to the templates of Jobs whose selector it generates.
pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
/// Annotation and label of an Indexed Job's pod: its index.
pub const JOB_COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Annotation: the counted failures of its index.
pub const JOB_INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// Annotation: the failures of its index that the pod failure policy ignores.
pub const JOB_INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
pub const JOB_COMPLETION_INDEX_ENV: &str = "JOB_COMPLETION_INDEX";
pub const JOB_CONTROLLER_NAME: &str = "kubernetes.io/job-controller";

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Job {
    pub metadata: Meta,
    pub spec: JobSpec,
    #[serde(default)]
    pub status: JobStatus,
}

shared::view!(Job, JOBS);

impl Job {
    /// The other controller that manages it, if one does.
    ///
    /// Upstream: `managedByExternalController`, `pkg/controller/job/job_controller.go`.
    pub fn external_controller(&self) -> Option<&str> {
        self.spec.managed_by.as_deref().filter(|name| *name != JOB_CONTROLLER_NAME)
    }

    /// Whether its syncs read pods: it has not ended, and this controller manages it.
    pub fn counts_pods(&self) -> bool {
        self.external_controller().is_none() && !self.status.is_finished()
    }

    /// Whether it may own a pod without the label [`CONTROLLER_UID`]: its selector is manual, or it is older than the
    /// label. Any other Job releases a pod that has lost the label.
    pub fn selects_unlabelled(&self) -> bool {
        self.spec.selector.as_ref().is_ok_and(|selector| !selector.requires(CONTROLLER_UID))
    }

    pub fn is_indexed(&self) -> bool {
        self.spec.completion_mode == CompletionMode::Indexed
    }

    /// Whether a pod is replaced only after it has failed, and not when its deletion begins.
    ///
    /// Upstream: `onlyReplaceFailedPods`, `pkg/controller/job/job_controller.go`.
    pub fn replaces_failed_pods_only(&self) -> bool {
        self.spec.pod_replacement_policy == PodReplacementPolicy::Failed || self.spec.pod_failure_policy.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    #[serde(default = "one")]
    pub parallelism: i32,
    /// None for a work queue, which the first success ends.
    #[serde(default)]
    pub completions: Option<i32>,
    #[serde(default)]
    pub completion_mode: CompletionMode,
    #[serde(default = "six")]
    pub backoff_limit: i32,
    #[serde(default)]
    pub backoff_limit_per_index: Option<i32>,
    #[serde(default)]
    pub max_failed_indexes: Option<i32>,
    #[serde(default)]
    pub active_deadline_seconds: Option<i64>,
    #[serde(default)]
    pub suspend: bool,
    #[serde(default)]
    pub pod_failure_policy: Option<PodFailurePolicy>,
    #[serde(default)]
    pub success_policy: Option<SuccessPolicy>,
    #[serde(default)]
    pub pod_replacement_policy: PodReplacementPolicy,
    #[serde(default)]
    pub managed_by: Option<Text>,
    #[serde(default = "select_nothing", deserialize_with = "compiled")]
    pub selector: Result<Selector, InvalidSelector>,
    /// Without one no pods are created, but existing ones are still deleted.
    #[serde(default)]
    pub template: PodTemplate,
}

fn one() -> i32 {
    1
}

fn six() -> i32 {
    6
}

#[expect(clippy::unnecessary_wraps, reason = "it stands in for what can fail")]
fn select_nothing() -> Result<Selector, InvalidSelector> {
    Ok(Selector::nothing())
}

fn compiled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Result<Selector, InvalidSelector>, D::Error> {
    let selector = Option::<LabelSelector>::deserialize(deserializer)?;
    Ok(selector.as_ref().map_or_else(select_nothing, Selector::parse))
}

impl JobSpec {
    /// Whether containers are restarted in place when they fail.
    pub fn restarts_on_failure(&self) -> bool {
        self.template.restart_policy().is_some_and(|policy| policy == *"OnFailure")
    }
}

impl Abridged for Job {
    fn left_out(&self) -> usize {
        self.spec.template.left_out()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        let spec = JobSpec { template: template_of(spec)?, ..self.spec.clone() };
        Ok(Self { spec, ..self.clone() })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CompletionMode {
    #[default]
    NonIndexed,
    /// Each index must succeed once.
    Indexed,
    Other(Text),
}

impl<'de> Deserialize<'de> for CompletionMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mode = Option::<Text>::deserialize(deserializer)?;
        Ok(match mode.as_deref() {
            None | Some("NonIndexed") => Self::NonIndexed,
            Some("Indexed") => Self::Indexed,
            Some(other) => Self::Other(Text::new(other)),
        })
    }
}

impl CompletionMode {
    pub fn as_str(&self) -> &str {
        match self {
            Self::NonIndexed => "NonIndexed",
            Self::Indexed => "Indexed",
            Self::Other(other) => other,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PodReplacementPolicy {
    /// Only after it has failed.
    Failed,
    /// Also when its deletion begins; as upstream, also for an unknown policy.
    #[default]
    #[serde(other)]
    TerminatingOrFailed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodFailurePolicy {
    /// The first that matches counts.
    #[serde(deserialize_with = "null_as_default")]
    pub rules: Vec<PodFailurePolicyRule>,
}

/// One of `spec.podFailurePolicy.rules`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodFailurePolicyRule {
    pub action: PodFailureAction,
    /// If set, the conditions are ignored.
    #[serde(default)]
    pub on_exit_codes: Option<OnExitCodes>,
    #[serde(default, deserialize_with = "null_as_default")]
    pub on_pod_conditions: Vec<OnPodCondition>,
}

/// The effect of a failed pod on its Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum PodFailureAction {
    FailJob,
    FailIndex,
    Ignore,
    /// It counts, as without a policy.
    Count,
    #[serde(other)]
    Other,
}

impl PodFailureAction {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailJob => "FailJob",
            Self::FailIndex => "FailIndex",
            Self::Ignore => "Ignore",
            Self::Count => "Count",
            Self::Other => "Other",
        }
    }
}

/// `onExitCodes` of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OnExitCodes {
    #[serde(default)]
    pub container_name: Option<Text>,
    pub operator: OnExitCodesOperator,
    #[serde(default, deserialize_with = "null_as_default")]
    pub values: Vec<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum OnExitCodesOperator {
    In,
    NotIn,
    /// Unknown to this version; never matches.
    #[serde(other)]
    Other,
}

/// One of `onPodConditions` of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OnPodCondition {
    #[serde(rename = "type")]
    pub type_: Text,
    #[serde(default = "condition_true")]
    pub status: Text,
}

fn condition_true() -> Text {
    Text::new(shared::api::condition::TRUE)
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SuccessPolicy {
    /// The first that is met counts.
    #[serde(deserialize_with = "null_as_default")]
    pub rules: Vec<SuccessPolicyRule>,
}

/// One of `spec.successPolicy.rules`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessPolicyRule {
    pub succeeded_indexes: Option<Box<str>>,
    pub succeeded_count: Option<i32>,
}
