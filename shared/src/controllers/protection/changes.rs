//! Which changes of a protected object lead to a sync of it.

use super::{Protection, State};
use crate::api::object::Object;
use crate::following::cache::Change;
use crate::working::effect::Effect;
use crate::working::queue::Cause;

impl State {
    const fn may_write(self) -> bool {
        match self {
            Self::Unprotected | Self::Candidate => true,
            Self::Protected | Self::LetGo => false,
        }
    }
}

impl Protection {
    /// The object is synced if the sync may write to it.
    ///
    /// Upstream: `pvAddedUpdated`, `pvcAddedUpdated` and `vacAddedUpdated`.
    pub fn changed<T: Object>(&self, change: Change<'_, T>) -> Vec<Effect> {
        let metadata = change.existing().map(|object| object.meta());
        let due = metadata.filter(|metadata| self.state(metadata).may_write());
        due.map(|metadata| Effect::Enqueue(metadata.key.clone(), Cause::Event)).into_iter().collect()
    }
}
