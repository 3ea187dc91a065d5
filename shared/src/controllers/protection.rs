//! A finalizer that keeps an object while others use it: what the object's metadata ask for, the decision, the two writes,
//! and one sync.
//!
//! Left out: what uses an object, and how that is read. Each operator knows its own.
//!
//! Upstream: `pkg/controller/util/protectionutil/utils.go`, and the same two writes in each controller.

pub mod apply;
mod changes;
pub mod observe;
pub mod plan;
pub mod sync;
pub mod users;

use crate::api::object::{Kind, Meta};
use crate::api::resource::Resource;

#[derive(Clone, Debug)]
pub struct Protection {
    pub resource: Resource,
    pub finalizer: &'static str,
    /// Whether an object that lacks the finalizer gets it here. Otherwise somebody else adds it.
    pub adds: bool,
}

/// A kind whose objects are kept while others use them.
pub trait Protected: Kind {
    const PROTECTION: Protection;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not being deleted, without the finalizer. Upstream: `NeedToAddFinalizer`.
    Unprotected,
    /// Not being deleted, with the finalizer.
    Protected,
    /// Being deleted, with the finalizer. Upstream: `IsDeletionCandidate`.
    Candidate,
    /// Being deleted, without the finalizer.
    LetGo,
}

impl Protection {
    pub fn state<A>(&self, metadata: &Meta<A>) -> State {
        let has_finalizer = metadata.finalizers.iter().any(|finalizer| finalizer == self.finalizer);
        match (metadata.is_being_deleted(), has_finalizer) {
            (false, false) => State::Unprotected,
            (false, true) => State::Protected,
            (true, true) => State::Candidate,
            (true, false) => State::LetGo,
        }
    }
}
