//! Which StorageVersions are synced when one of them changes, or when the Lease of an apiserver goes.

use shared::following::cache::{Change, IndexValue};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{Lease, StorageVersion};
use crate::observe::Caches;

impl Caches {
    /// Upstream: `enqueueStorageVersion`, `pkg/controller/storageversiongc/gc_controller.go`.
    pub fn storage_version_changed(&self, change: Change<'_, StorageVersion>) -> Vec<Effect> {
        let due = change.existing().filter(|storage_version| !self.unseen(storage_version).is_empty());
        due.map(|storage_version| Effect::Enqueue(storage_version.metadata.key.clone(), Cause::Event))
            .into_iter()
            .collect()
    }

    /// Upstream: `onDeleteLease` and `processDeletedLease`, `pkg/controller/storageversiongc/gc_controller.go`.
    pub fn lease_changed(&self, change: Change<'_, Lease>) -> Vec<Effect> {
        let Change::Deleted(lease) = change else { return Vec::new() };
        let apiserver = IndexValue::Text(lease.metadata.name().into());
        let named = self.storage_versions.by_index(self.storage_versions_by_apiserver, &apiserver);
        named.iter().map(|named| Effect::Enqueue(named.metadata.key.clone(), Cause::Event)).collect()
    }
}
