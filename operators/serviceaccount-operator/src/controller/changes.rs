//! Which namespace is synced when an object changes.
//!
//! Left out: namespaces that are gone, and ServiceAccounts that appear or change. None of that gives anything to do.

use shared::api::object::Key;
use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;
use shared::runtime::queue::Cause;

use crate::objects::{Namespace, ServiceAccount};
use crate::observe::Caches;

#[expect(clippy::unused_self, reason = "a change has one shape, whether or not the caches are asked")]
impl Caches {
    /// Upstream: `namespaceAdded` and `namespaceUpdated`, `pkg/controller/serviceaccount/serviceaccounts_controller.go`.
    pub(crate) fn namespace_changed(&self, change: Change<'_, Namespace>) -> Vec<Effect> {
        let key = change.existing().map(|namespace| namespace.metadata.key.clone());
        key.map(|key| Effect::Enqueue(key, Cause::Event)).into_iter().collect()
    }

    /// Upstream: `serviceAccountDeleted`, `pkg/controller/serviceaccount/serviceaccounts_controller.go`.
    pub(crate) fn service_account_changed(&self, change: Change<'_, ServiceAccount>) -> Vec<Effect> {
        match change {
            Change::Deleted(account) => {
                vec![Effect::Enqueue(Key::new("", account.metadata.namespace()), Cause::Event)]
            }
            Change::Added(_) | Change::Updated { .. } => Vec::new(),
        }
    }
}
