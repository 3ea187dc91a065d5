//! The view of a Job, and the exact texts that this operator writes.
//!
//! Reading order: [`Job`] → [`JobSpec`] → [`status`] → [`pod`] (what a Pod is to a Job).
//! Left out: a typed pod template, of which only the restart policy is read.

pub mod pod;
pub mod status;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::JOBS;
use shared::api::selector::{InvalidSelector, LabelSelector, Selector};
use shared::api::template::PodTemplate;

use status::JobStatus;

/// On each pod that is not counted yet; it keeps the pod until it is.
pub const JOB_TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The label that the apiserver gives to the pods of each Job whose selector it chooses: the Job's uid.
pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
/// Annotation and label of an Indexed Job's pod: which index it works on.
pub const JOB_COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Annotation: how often its index has failed before.
pub const JOB_INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// Annotation: how often its index has failed before in a way that the pod failure policy ignores.
pub const JOB_INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// The variable in which containers find their index.
pub const JOB_COMPLETION_INDEX_ENV: &str = "JOB_COMPLETION_INDEX";
/// `spec.managedBy` of a Job that is ours after all.
pub const JOB_CONTROLLER_NAME: &str = "kubernetes.io/job-controller";

/// The view of a Job.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Job {
    /// Its metadata.
    pub metadata: Meta,
    /// The work to do.
    pub spec: JobSpec,
    /// The progress that was last written.
    #[serde(default)]
    pub status: JobStatus,
}

shared::view!(Job, JOBS);

impl Job {
    /// Whether another controller looks after it.
    ///
    /// Upstream: `managedByExternalController`, `pkg/controller/job/job_controller.go`.
    pub fn external_controller(&self) -> Option<&str> {
        self.spec.managed_by.as_deref().filter(|name| *name != JOB_CONTROLLER_NAME)
    }

    /// Whether its syncs read pods: it goes on, and no other controller looks after it.
    pub fn counts_pods(&self) -> bool {
        self.external_controller().is_none() && !self.status.is_finished()
    }

    /// Whether it may own a pod without the label [`CONTROLLER_UID`]: its user chose the selector, or it is older than
    /// the label. Any other Job releases a pod that has lost the label.
    pub fn selects_unlabelled(&self) -> bool {
        self.spec.selector.as_ref().is_ok_and(|selector| !selector.requires(CONTROLLER_UID))
    }

    /// Whether pods have indexes.
    pub fn is_indexed(&self) -> bool {
        self.spec.completion_mode == CompletionMode::Indexed
    }

    /// Whether a pod is replaced only once it has failed, and not as soon as it is being deleted.
    ///
    /// Upstream: `onlyReplaceFailedPods`, `pkg/controller/job/job_controller.go`.
    pub fn replaces_failed_pods_only(&self) -> bool {
        self.spec.pod_replacement_policy == PodReplacementPolicy::Failed || self.spec.pod_failure_policy.is_some()
    }
}

/// `spec` of a Job.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    /// How many pods may run at once.
    #[serde(default = "one")]
    pub parallelism: i32,
    /// How many pods are to succeed; none for a work queue, whose first success ends it.
    #[serde(default)]
    pub completions: Option<i32>,
    /// Whether each completion has an index.
    #[serde(default)]
    pub completion_mode: CompletionMode,
    /// How many pods may fail.
    #[serde(default = "six")]
    pub backoff_limit: i32,
    /// How often each index may fail.
    #[serde(default)]
    pub backoff_limit_per_index: Option<i32>,
    /// How many indexes may fail.
    #[serde(default)]
    pub max_failed_indexes: Option<i32>,
    /// How long it may take.
    #[serde(default)]
    pub active_deadline_seconds: Option<i64>,
    /// Whether no pods are to run for now.
    #[serde(default)]
    pub suspend: bool,
    /// Rules that make more or less of a failed pod than one failure.
    #[serde(default)]
    pub pod_failure_policy: Option<PodFailurePolicy>,
    /// Which indexes suffice.
    #[serde(default)]
    pub success_policy: Option<SuccessPolicy>,
    /// When a pod is replaced.
    #[serde(default)]
    pub pod_replacement_policy: PodReplacementPolicy,
    /// The controller that reconciles this Job; none for this one.
    #[serde(default)]
    pub managed_by: Option<Text>,
    /// Which pods are its own. None selects nothing.
    #[serde(default = "select_nothing", deserialize_with = "compiled")]
    pub selector: Result<Selector, InvalidSelector>,
    /// How its pods are made. Without one none are made, but existing pods can still go.
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
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            restart_policy: Option<Text>,
        }
        let read = |spec: &RawValue| serde_json::from_str::<Spec>(spec.get()).ok()?.restart_policy;
        self.template.spec().and_then(read).is_some_and(|policy| policy == *"OnFailure")
    }
}

/// `spec.completionMode`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CompletionMode {
    /// Any pod is as good as another.
    #[default]
    NonIndexed,
    /// Each index is to succeed once.
    Indexed,
    /// One that this build does not know.
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
    /// As metrics show it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::NonIndexed => "NonIndexed",
            Self::Indexed => "Indexed",
            Self::Other(other) => other,
        }
    }
}

/// `spec.podReplacementPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PodReplacementPolicy {
    /// Once it has ended with a failure.
    Failed,
    /// As soon as it is being deleted, too. Unknown policies count as this one, as upstream.
    #[default]
    #[serde(other)]
    TerminatingOrFailed,
}

/// `spec.podFailurePolicy`.
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
    /// Its effect on the Job.
    pub action: PodFailureAction,
    /// Which ends of containers it means; then the conditions do not count.
    #[serde(default)]
    pub on_exit_codes: Option<OnExitCodes>,
    /// Which conditions of a pod it means.
    #[serde(default, deserialize_with = "null_as_default")]
    pub on_pod_conditions: Vec<OnPodCondition>,
}

/// The effect of a failed pod on its Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum PodFailureAction {
    /// The whole Job fails.
    FailJob,
    /// Its index fails.
    FailIndex,
    /// It does not count.
    Ignore,
    /// It counts, as if there were no policy.
    Count,
    /// One that this build does not know.
    #[serde(other)]
    Other,
}

impl PodFailureAction {
    /// As the API has it.
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
    /// The container; none for any.
    #[serde(default)]
    pub container_name: Option<Text>,
    /// How the values count.
    pub operator: OnExitCodesOperator,
    /// The exit codes.
    #[serde(default, deserialize_with = "null_as_default")]
    pub values: Vec<i32>,
}

/// `onExitCodes.operator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum OnExitCodesOperator {
    /// One of them.
    In,
    /// None of them.
    NotIn,
    /// One that this build does not know: it never matches.
    #[serde(other)]
    Other,
}

/// One of `onPodConditions` of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OnPodCondition {
    /// The condition's type.
    #[serde(rename = "type")]
    pub type_: Text,
    /// The condition's status.
    #[serde(default = "condition_true")]
    pub status: Text,
}

fn condition_true() -> Text {
    Text::new(shared::api::condition::TRUE)
}

/// `spec.successPolicy`.
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
    /// Which indexes it means; none for all.
    pub succeeded_indexes: Option<Box<str>>,
    /// How many of them suffice; none for all.
    pub succeeded_count: Option<i32>,
}
