//! The effects of a change of a quota.
//!
//! A change of the status leads to no sync: it is the charge of an object that is not stored yet, and a count now would
//! release it.

use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::ResourceQuota;

/// Upstream: `NewController` and `addQuota`, `pkg/controller/resourcequota/resource_quota_controller.go`. Upstream's
/// priority queue is the cause [`Cause::Edit`] here.
pub(super) fn quota_changed(change: Change<'_, ResourceQuota>) -> Vec<Effect> {
    let meta = &change.latest().metadata;
    let enqueue = |quota: &ResourceQuota| {
        let cause = if quota.lacks_usage() { Cause::Edit } else { Cause::Event };
        vec![Effect::Enqueue(meta.key.clone(), cause)]
    };
    match change {
        Change::Updated { old, new } if old.hard == new.hard => Vec::new(),
        Change::Added(quota) | Change::Updated { old: _, new: quota } => enqueue(quota),
        Change::Deleted(_) => vec![Effect::Forget(meta.key.clone(), meta.uid)],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use shared::testing::{object, uid};

    use super::*;

    fn quota(spec: &Value, status: &Value, used: &Value) -> Arc<ResourceQuota> {
        let quota = object("v1", "ResourceQuota", "q").set(&["spec", "hard"], spec.clone());
        quota.set(&["status", "hard"], status.clone()).set(&["status", "used"], used.clone()).build()
    }

    fn cause(change: Change<'_, ResourceQuota>) -> Option<Cause> {
        let effects = quota_changed(change);
        assert!(effects.len() <= 1, "{effects:?}");
        effects.into_iter().find_map(|effect| match effect {
            Effect::Enqueue(_, cause) => Some(cause),
            Effect::EnqueueAfter(..)
            | Effect::CreationObserved(_)
            | Effect::DeletionObserved(..)
            | Effect::Forget(..) => None,
        })
    }

    /// Upstream: `TestAddQuota`.
    #[test]
    fn a_quota_that_lacks_usage_goes_first() {
        let (four, none) = (json!({ "cpu": "4" }), json!({}));
        let added = |spec: &Value, status: &Value, used: &Value| cause(Change::Added(&quota(spec, status, used)));
        // "no status", "status, no usage", "status, no usage(to validate it works for extended resources)"
        assert_eq!(added(&four, &none, &none), Some(Cause::Edit));
        assert_eq!(added(&four, &four, &none), Some(Cause::Edit));
        let extended = json!({ "requests.example/foobars.example.com": "4" });
        assert_eq!(added(&extended, &extended, &none), Some(Cause::Edit));
        // "status, mismatch"
        assert_eq!(added(&four, &json!({ "cpu": "6" }), &json!({ "cpu": "0" })), Some(Cause::Edit));
        // "status, missing usage, but don't care (no informer)"
        let foreign = json!({ "foobars.example.com": "4" });
        assert_eq!(added(&foreign, &foreign, &none), Some(Cause::Event));
        // "ready"
        assert_eq!(added(&four, &four, &json!({ "cpu": "0" })), Some(Cause::Event));
    }

    #[test]
    fn only_other_limits_lead_to_a_sync_of_a_quota_that_is_known() {
        let (four, six, none) = (json!({ "cpu": "4" }), json!({ "cpu": "6" }), json!({}));
        let (old, new) = (quota(&four, &four, &none), quota(&six, &four, &none));
        assert_eq!(cause(Change::Updated { old: &old, new: &new }), Some(Cause::Edit));
        let (written, in_millis) = (quota(&four, &six, &six), quota(&json!({ "cpu": "4000m" }), &four, &none));
        for same in [&old, &written, &in_millis] {
            assert_eq!(cause(Change::Updated { old: &old, new: same }), None);
        }
        let forgotten = vec![Effect::Forget(old.metadata.key.clone(), uid("q"))];
        assert_eq!(quota_changed(Change::Deleted(&old)), forgotten);
    }
}
