//! Which namespace is synced when an object changes: one that appears or changes, and one whose ServiceAccount is
//! deleted.

use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{Namespace, ServiceAccount};

/// Upstream: `namespaceAdded` and `namespaceUpdated`, `pkg/controller/serviceaccount/serviceaccounts_controller.go`.
pub(super) fn namespace_changed(change: Change<'_, Namespace>) -> Vec<Effect> {
    let key = change.existing().map(|namespace| namespace.metadata.key.clone());
    key.map(|key| Effect::Enqueue(key, Cause::Event)).into_iter().collect()
}

/// Upstream: `serviceAccountDeleted`, `pkg/controller/serviceaccount/serviceaccounts_controller.go`.
pub(super) fn service_account_changed(change: Change<'_, ServiceAccount>) -> Vec<Effect> {
    match change {
        Change::Deleted(account) => vec![Effect::Enqueue(Key::new("", account.metadata.namespace()), Cause::Event)],
        Change::Added(_) | Change::Updated { .. } => Vec::new(),
    }
}
