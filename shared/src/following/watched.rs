//! The informers that the syncs of one process read, always or on demand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::api::object::Key;
use crate::api::resource::Resource;
use crate::following::demand::Demand;
use crate::following::source::Follow;

/// The informers that the syncs of one process read; all clones share one list.
#[derive(Clone, Default)]
pub struct Watched(Arc<Mutex<Lists>>);

#[derive(Default)]
struct Lists {
    followed: Vec<Arc<Follow>>,
    demands: Vec<Demand>,
}

impl Watched {
    pub fn add(&self, follow: Follow) {
        let Lists { followed, .. } = &mut *self.lists();
        followed.retain(|follow| follow.is_running());
        followed.push(Arc::new(follow));
    }

    /// Adds a resource that is followed on demand; its informers come and go by themselves.
    pub(crate) fn add_demand(&self, demand: Demand) {
        self.lists().demands.push(demand);
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(&self, resource: &Resource) -> Vec<Arc<Follow>> {
        self.lists().followed.iter().filter(|follow| follow.resource == *resource).map(Arc::clone).collect()
    }

    /// The resources that a sync of this key reads and that were not listed yet.
    pub(crate) fn not_listed_for(&self, key: &Key) -> Vec<Demand> {
        self.lists().demands.iter().filter(|demand| !demand.is_listed_for(key)).cloned().collect()
    }
}
