//! Which changes lead to a sync of a protected object.

use super::{Protection, State};
use crate::api::object::Object;
use crate::following::cache::Change;
use crate::working::effect::Effect;
use crate::working::queue::Cause;

impl Protection {
    /// The object is synced if the sync may write to it.
    ///
    /// Upstream: `pvAddedUpdated`, `pvcAddedUpdated` and `vacAddedUpdated`.
    pub fn changed<T: Object>(&self, change: Change<'_, T>) -> Vec<Effect> {
        let due = change.existing().filter(|object| match self.state(object.meta()) {
            State::Unprotected => self.adds,
            State::Candidate => true,
            State::Protected | State::LetGo => false,
        });
        due.map(|object| enqueue(&**object)).into_iter().collect()
    }

    /// An object that may have lost a user is synced if it is being deleted.
    pub fn freed<T: Object>(&self, object: &T) -> Option<Effect> {
        (self.state(object.meta()) == State::Candidate).then(|| enqueue(object))
    }
}

fn enqueue<T: Object>(object: &T) -> Effect {
    Effect::Enqueue(object.meta().key.clone(), Cause::Event)
}
