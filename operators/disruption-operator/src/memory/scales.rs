//! The scales of owners read in the last second. While pods are replaced, their events come in groups, and each group
//! needs one read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use shared::api::object::Uid;
use shared::transport::clock::left_of;

use crate::objects::owner::OwnerScale;

/// How long a scale counts.
const RECENT: Duration = Duration::from_secs(1);
/// Older scales are dropped once there are this many.
const MANY: usize = 1024;

/// The last scale of each owner, and when it was read.
#[derive(Default)]
pub struct RecentScales(Mutex<HashMap<Uid, (OwnerScale, Timestamp)>>);

impl RecentScales {
    /// The scale of an owner, and how long it counts; none if it must be read.
    pub fn recent(&self, owner: Uid, now: Timestamp) -> Option<(OwnerScale, Duration)> {
        let (scale, read) = self.scales().get(&owner).copied()?;
        Some((scale, left_of(RECENT, read, now)?))
    }

    pub fn note(&self, owner: Uid, scale: OwnerScale, now: Timestamp) {
        let mut scales = self.scales();
        if scales.len() >= MANY {
            scales.retain(|_, (_, read)| left_of(RECENT, *read, now).is_some());
        }
        scales.insert(owner, (scale, now));
    }

    pub fn start_over(&self) {
        self.scales().clear();
    }

    fn scales(&self) -> MutexGuard<'_, HashMap<Uid, (OwnerScale, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
