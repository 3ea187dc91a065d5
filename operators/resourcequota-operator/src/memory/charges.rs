//! The charges of the apiserver, as seen in the usage of a quota: the version of the last one for each kind, and those
//! whose objects may not be stored yet.
//!
//! An object is charged before it is stored. A lower count must therefore come from a cache that is as new as the last
//! charge, and must leave room for objects under way. Otherwise it would release a charge that is in use.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::api::object::{Key, ResourceVersion};
use shared::following::cache::Change;
use tokio::time::Instant;

use crate::objects::amounts::add;
use crate::objects::{Amounts, Evaluator, ResourceQuota};

/// After this time a charge expires: its object was never stored.
pub const UNSTORED: Duration = Duration::from_secs(10);
/// Charges within this time are merged.
const TOGETHER: Duration = Duration::from_secs(1);

/// The charges by quota. A restart may lose them, because it lists all counted objects after the quotas.
#[derive(Default)]
pub struct Charges(Mutex<BTreeMap<Key, Charged>>);

#[derive(Default)]
struct Charged {
    versions: BTreeMap<Evaluator, ResourceVersion>,
    /// The usage that this operator wrote last, which is not a charge.
    written: Amounts,
    /// Up to this version of the quota all charges are stored or expired.
    settled: ResourceVersion,
    /// The charges since then, in order.
    open: Vec<Charge>,
}

struct Charge {
    at: Instant,
    version: ResourceVersion,
    amounts: Amounts,
}

/// The charges whose objects may not be stored yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Open {
    /// Their objects arrive after this version.
    pub since: ResourceVersion,
    /// The sums, by name.
    pub amounts: Amounts,
    /// The time until the oldest of them expires.
    pub left: Option<Duration>,
}

impl Charged {
    fn expire(&mut self, now: Instant) {
        let is_old = |charge: &Charge| now.saturating_duration_since(charge.at) >= UNSTORED;
        let old = self.open.iter().take_while(|charge| is_old(charge)).count();
        if let Some(last) = self.open.drain(..old).next_back() {
            self.settled = last.version;
        }
    }

    fn add(&mut self, charge: Charge) {
        let is_together = |last: &&mut Charge| charge.at.saturating_duration_since(last.at) < TOGETHER;
        if let Some(last) = self.open.last_mut().filter(is_together)
            && add(&mut last.amounts, &charge.amounts).is_ok()
        {
            last.version = charge.version;
        } else {
            self.open.push(charge);
        }
    }
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

    /// The charges whose objects may not be stored yet.
    pub fn open(&self, quota: &Key) -> Open {
        let (mut all, now) = (self.all(), Instant::now());
        let Some(charged) = all.get_mut(quota) else { return Open::default() };
        charged.expire(now);
        let mut open = Open { since: charged.settled, ..Open::default() };
        for charge in &charged.open {
            // It cannot fail: each was part of a usage that fits.
            let _ = add(&mut open.amounts, &charge.amounts);
        }
        let oldest = charged.open.first();
        open.left = oldest.map(|charge| UNSTORED.saturating_sub(now.saturating_duration_since(charge.at)));
        open
    }

    /// Settles all charges up to this version of a quota.
    pub fn settle(&self, quota: &Key, version: ResourceVersion) {
        let mut all = self.all();
        if let Some(charged) =
            all.get_mut(quota).filter(|of| of.open.last().is_some_and(|last| last.version <= version))
        {
            charged.open = Vec::new();
            charged.settled = version;
        }
    }

    /// Notes the usage that is about to be written.
    pub fn writes(&self, quota: &Key, used: &Amounts) {
        self.all().entry(quota.clone()).or_default().written.clone_from(used);
    }

    pub fn note(&self, change: &Change<'_, ResourceQuota>) {
        match change {
            Change::Added(_) => {}
            Change::Updated { old, new } => self.note_rise(old, new),
            Change::Deleted(quota) => drop(self.all().remove(&quota.metadata.key)),
        }
    }

    fn note_rise(&self, old: &ResourceQuota, new: &ResourceQuota) {
        let (before, version, at) = (&old.status.used, new.metadata.resource_version, Instant::now());
        let mut amounts = Amounts::new();
        for (name, used) in &new.status.used {
            let risen = before.get(name).map_or(Some(*used), |before| used.checked_sub(*before));
            amounts.extend(
                risen.filter(|_| before.get(name).is_none_or(|before| used > before)).map(|by| (name.clone(), by)),
            );
        }
        if amounts.is_empty() {
            return;
        }
        let mut all = self.all();
        let charged = all.entry(new.metadata.key.clone()).or_default();
        if charged.written == new.status.used {
            return;
        }
        charged.expire(at);
        if charged.open.is_empty() {
            charged.settled = old.metadata.resource_version;
        }
        let risen = amounts.keys().flat_map(|name| Evaluator::of(name));
        // The apiserver does not charge these.
        let risen = risen.filter(|evaluator| *evaluator != Evaluator::DeviceClasses);
        charged.versions.extend(risen.map(|evaluator| (evaluator, version)));
        charged.add(Charge { at, version, amounts });
    }

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
