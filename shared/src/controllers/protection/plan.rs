//! The decision about a finalizer: it goes once neither the caches nor a live list shows a user.
//!
//! Left out: what uses an object, which each operator knows.
//!
//! Upstream: `processPVC`, `processVAC` and `processPodGroup`.

use std::fmt;

use serde::Serialize;

use super::observe::Observed;
use super::users::{Users, Words};
use super::{Protected, State};
use crate::working::control::Preconditions;
use crate::working::decisions::{self, LiveRead, Reasoned};

pub type Next<U> = decisions::Next<Reason<U>, Plan<U>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan<U> {
    /// Write nothing until something changes.
    Keep(Reason<U>),
    /// Write nothing, and check again: the caches may never show that these users have gone.
    Recheck {
        users: U,
    },
    Add {
        preconditions: Preconditions,
    },
    Remove {
        preconditions: Preconditions,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason<U> {
    /// It is not being deleted and has the finalizer.
    Protected,
    /// It is not being deleted and lacks the finalizer.
    Unprotected,
    /// It is being deleted, and these use it.
    Used(U),
    /// It is being deleted, and these use it that are not in the caches.
    UsedByOthers(U),
    /// It is being deleted, and nothing in the caches uses it.
    NotSeen,
    /// It is being deleted, and nothing uses it.
    Unused,
    /// It is being deleted without the finalizer.
    LetGo,
}

impl<U: Users> decisions::Reason for Reason<U> {}

impl<U: Users> Reasoned for Plan<U> {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => reason.clone(),
            Self::Recheck { users } => Reason::UsedByOthers(users.clone()),
            Self::Add { preconditions: _ } => Reason::Unprotected,
            Self::Remove { preconditions: _ } => Reason::Unused,
        }
    }
}

/// Plans the next stage. The caches can show that something uses an object; only a live list shows that nothing does.
pub fn plan<T: Protected, U: Users>(observed: &Observed<T, U>) -> Next<U> {
    let Observed { object, cached, live } = observed;
    let preconditions = Preconditions::of(object.meta());
    Next::Execute(match T::PROTECTION.state(object.meta()) {
        State::Unprotected if T::PROTECTION.adds => Plan::Add { preconditions },
        State::Unprotected => Plan::Keep(Reason::Unprotected),
        State::Protected => Plan::Keep(Reason::Protected),
        State::LetGo => Plan::Keep(Reason::LetGo),
        State::Candidate if !cached.is_empty() => Plan::Keep(Reason::Used(cached.clone())),
        State::Candidate => match live {
            None => return Next::Ask(LiveRead { step: U::WORDS.list, reason: Reason::NotSeen }),
            Some(users) if users.is_empty() => Plan::Remove { preconditions },
            Some(users) => Plan::Recheck { users: users.clone() },
        },
    })
}

impl<U: Users> fmt::Display for Plan<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Recheck { .. } => write!(f, "keep and check again ({reason})"),
            Self::Add { .. } => write!(f, "add the finalizer ({reason})"),
            Self::Remove { .. } => write!(f, "remove the finalizer ({reason})"),
        }
    }
}

impl<U: Users> fmt::Display for Reason<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Words { used_by, used_by_others, not_seen, unused, list: _, another_list: _ } = U::WORDS;
        match self {
            Self::Protected => f.write_str("has the finalizer"),
            Self::Unprotected => f.write_str("lacks the finalizer"),
            Self::Used(users) => write!(f, "{used_by} {users}"),
            Self::UsedByOthers(users) => write!(f, "{used_by_others} {users}"),
            Self::NotSeen => f.write_str(not_seen),
            Self::Unused => f.write_str(unused),
            Self::LetGo => f.write_str("being deleted without the finalizer"),
        }
    }
}
