//! The verdict of a Job's pod failure policy on a failed pod.

use crate::objects::pod::{Exit, Failure, Pod};
use crate::objects::{OnExitCodes, OnExitCodesOperator, OnPodCondition, PodFailureAction, PodFailurePolicy};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The action of the first rule that matches.
    pub action: Option<PodFailureAction>,
    pub rule: Option<usize>,
    /// Why the whole Job fails.
    pub fail_job: Option<String>,
}

impl Verdict {
    pub fn counts(&self) -> bool {
        self.action != Some(PodFailureAction::Ignore)
    }
}

/// Finds the first rule that matches. Rules with an unknown action are skipped.
///
/// Upstream: `matchPodFailurePolicy`, `pkg/controller/job/pod_failure_policy.go`.
pub fn match_pod_failure_policy(policy: Option<&PodFailurePolicy>, pod: &Pod) -> Verdict {
    let (Some(policy), Some(failure)) = (policy, &pod.failure) else { return Verdict::default() };
    let rules = policy.rules.iter().enumerate().filter(|(_, rule)| rule.action != PodFailureAction::Other);
    for (at, rule) in rules {
        let because = match &rule.on_exit_codes {
            Some(wanted) => match_exit_codes(failure, wanted).map(|Exit { container, code }| {
                format!("Container {container} for pod {} failed with exit code {code}", pod.metadata.key)
            }),
            None => match_conditions(failure, &rule.on_pod_conditions)
                .map(|condition| format!("Pod {} has condition {condition}", pod.metadata.key)),
        };
        let Some(because) = because else { continue };
        let fails = rule.action == PodFailureAction::FailJob;
        let fail_job = fails.then(|| format!("{because} matching FailJob rule at index {at}"));
        return Verdict { action: Some(rule.action), rule: Some(at), fail_job };
    }
    Verdict::default()
}

/// Upstream: `matchOnExitCodes`; exit code 0 never matches, so it is not even kept.
fn match_exit_codes<'a>(failure: &'a Failure, wanted: &OnExitCodes) -> Option<&'a Exit> {
    failure.exits.iter().find(|exit| {
        let is_meant = wanted.container_name.as_ref().is_none_or(|name| *name == exit.container);
        is_meant
            && match wanted.operator {
                OnExitCodesOperator::In => wanted.values.contains(&exit.code),
                OnExitCodesOperator::NotIn => !wanted.values.contains(&exit.code),
                OnExitCodesOperator::Other => false,
            }
    })
}

/// Upstream: `matchOnPodConditions`.
fn match_conditions<'a>(failure: &'a Failure, wanted: &[OnPodCondition]) -> Option<&'a str> {
    let is_wanted = |type_: &str, status: &str| wanted.iter().any(|w| w.type_ == *type_ && w.status == *status);
    failure.conditions.iter().find(|(type_, status)| is_wanted(type_, status)).map(|(type_, _)| type_.as_str())
}
