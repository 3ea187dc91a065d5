//! What the apiserver has charged: the version of a quota at which its usage has risen last, for each kind.
//!
//! An object is charged before it is stored. So a count that is to be lower must come from a cache that is as new as
//! the last charge, or it would give back what somebody has just got.
//! Left out: what is charged and not stored yet at that version; a quota is counted again a while after an object came.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, ResourceVersion};
use shared::runtime::cache::Change;

use crate::objects::{Amounts, Evaluator, ResourceQuota};

/// By quota. A kill loses this, and whoever starts lists all that it counts after the quotas.
#[derive(Default)]
pub struct Charges(Mutex<BTreeMap<Key, Charged>>);

#[derive(Default)]
struct Charged {
    versions: BTreeMap<Evaluator, ResourceVersion>,
    /// The usage that this operator has written last: no charge.
    written: Amounts,
}

impl Charges {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, Charged>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version up to which a kind must have been seen before this quota is counted.
    pub fn version(&self, quota: &Key, evaluator: &Evaluator) -> ResourceVersion {
        let all = self.all();
        all.get(quota).and_then(|charged| charged.versions.get(evaluator)).copied().unwrap_or_default()
    }

    /// Notes the usage that is about to be written.
    pub fn writes(&self, quota: &Key, used: &Amounts) {
        self.all().entry(quota.clone()).or_default().written.clone_from(used);
    }

    /// Notes where the usage of a quota has risen, and forgets one that is gone.
    pub fn note(&self, change: &Change<'_, ResourceQuota>) {
        match change {
            Change::Added(_) => {}
            Change::Updated { old, new } => self.note_rise(old, new),
            Change::Deleted(quota) => drop(self.all().remove(&quota.metadata.key)),
        }
    }

    fn note_rise(&self, old: &ResourceQuota, new: &ResourceQuota) {
        let before = &old.status.used;
        let risen = new.status.used.iter().filter(|(name, used)| before.get(*name).is_none_or(|before| used > &before));
        let mut risen: Vec<Evaluator> = risen.flat_map(|(name, _)| Evaluator::of(name)).collect();
        // Nobody charges these.
        risen.retain(|evaluator| *evaluator != Evaluator::DeviceClasses);
        if risen.is_empty() {
            return;
        }
        let mut all = self.all();
        let charged = all.entry(new.metadata.key.clone()).or_default();
        if charged.written != new.status.used {
            charged.versions.extend(risen.into_iter().map(|evaluator| (evaluator, new.metadata.resource_version)));
        }
    }

    /// Forgets the versions of an etcd that was restored from a backup.
    pub fn start_over(&self) {
        self.all().clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use shared::testing::object;

    use super::*;

    fn quota(version: u64, used: &Value) -> Arc<ResourceQuota> {
        let quota = object("v1", "ResourceQuota", "q").set(&["status", "used"], used.clone());
        quota.set(&["metadata", "resourceVersion"], version.to_string()).build()
    }

    fn versions(charges: &Charges) -> [u64; 2] {
        let key = Key::new("default", "q");
        ["pods", "secrets"].map(|name| charges.version(&key, &Evaluator::of(name)[0]).0)
    }

    #[test]
    fn a_rise_that_is_not_our_own_is_a_charge_of_its_kind() {
        let charges = Charges::default();
        let update = |old: &Arc<ResourceQuota>, new: &Arc<ResourceQuota>| {
            charges.note(&Change::Updated { old, new });
        };
        let one = quota(1, &json!({ "pods": "1", "secrets": "1" }));
        charges.note(&Change::Added(&one));
        assert_eq!(versions(&charges), [0, 0]);
        let two = quota(2, &json!({ "pods": "2", "secrets": "1" }));
        update(&one, &two);
        assert_eq!(versions(&charges), [2, 0]);
        let three = quota(3, &json!({ "pods": "1", "secrets": "1" }));
        update(&two, &three);
        assert_eq!(versions(&charges), [2, 0], "a fall is none");
        let four = quota(4, &json!({ "pods": "1", "secrets": "3" }));
        charges.writes(&Key::new("default", "q"), &four.status.used);
        update(&three, &four);
        assert_eq!(versions(&charges), [2, 0], "our own is none");
        update(&four, &quota(5, &json!({ "pods": "1", "secrets": "3", "cpu": "1" })));
        assert_eq!(versions(&charges), [5, 0], "what was not counted before");
        charges.note(&Change::Deleted(&four));
        assert_eq!(versions(&charges), [0, 0]);
    }
}
