//! Whether the succeeded indexes meet the Job's success policy.

use super::indexed::OrderedIntervals;
use crate::objects::SuccessPolicy;

/// The index of the first rule that is met.
///
/// Upstream: `matchSuccessPolicy`, `pkg/controller/job/success_policy.go`.
pub fn match_success_policy(
    policy: Option<&SuccessPolicy>,
    completions: i32,
    succeeded: &OrderedIntervals,
) -> Option<usize> {
    let policy = policy.filter(|_| !succeeded.is_empty())?;
    policy.rules.iter().position(|rule| {
        let count = rule.succeeded_count.map(i64::from);
        match &rule.succeeded_indexes {
            Some(text) => {
                let wanted = OrderedIntervals::parse(text, completions);
                let common = wanted.common(succeeded);
                !wanted.is_empty() && (common >= wanted.total() || count.is_some_and(|count| common >= count))
            }
            None => count.is_some_and(|count| succeeded.total() >= count),
        }
    })
}
