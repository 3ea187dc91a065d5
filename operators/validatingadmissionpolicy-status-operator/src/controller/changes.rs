//! A policy is synced when its spec was edited, and when its status is about an older generation.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::ValidatingAdmissionPolicy;

/// Upstream: `enqueuePolicy`, `pkg/controller/validatingadmissionpolicystatus/controller.go`, which enqueues each change.
pub fn policy_changed(change: Change<'_, ValidatingAdmissionPolicy>) -> Vec<Effect> {
    let (is_edit, policy) = match change {
        Change::Added(new) => (true, new),
        Change::Updated { old, new } => (old.metadata.generation != new.metadata.generation, new),
        Change::Deleted(_) => return Vec::new(),
    };
    if policy.is_checked() {
        return Vec::new();
    }
    vec![Effect::Enqueue(policy.metadata.key.clone(), if is_edit { Cause::Edit } else { Cause::Event })]
}
