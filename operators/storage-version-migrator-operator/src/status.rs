//! The condition with which a migration ends.

use jiff::Timestamp;

use crate::apply::Outcome;
use crate::objects::condition::ConditionPatch;

/// The condition to write; none if the migration goes on.
pub fn next_condition(outcome: &Outcome, now: Timestamp) -> Option<ConditionPatch<'_>> {
    match outcome {
        Outcome::GoesOn | Outcome::Waits(_) => None,
        Outcome::Succeeded => Some(ConditionPatch::succeeded(now)),
        Outcome::Failed(message) => Some(ConditionPatch::failed(message, now)),
    }
}
