//! Decisions as they are shown: a text for people, and a reason that programs read.
//!
//! Left out: the reasons of operators, which are their own enums, and keeping any of it.

use std::fmt::{self, Display};

use serde::Serialize;

use super::stage;
use crate::api::explain::Stage;
use crate::api::object::Object;
use crate::api::owner::Claim;

/// Why something is done, or nothing is: an enum with a case for each reason, whose fields say what it is about.
/// Programs read its JSON, people its text.
pub trait Reason: Display + Serialize {}

impl<R: Reason + ?Sized> Reason for &R {}

/// A plan, or a stage of one, as it is noted: no decision without a reason.
pub trait Reasoned: Display {
    /// Why it is what it is, also where it is to do nothing.
    fn reason(&self) -> impl Reason;
}

/// The stage before a live read: the caches leave something open, so the apiserver is asked, and the next stage is
/// planned from its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRead<R> {
    /// The read, worded as a step: `list pods`.
    pub step: &'static str,
    pub reason: R,
}

impl<R: Reason> Reasoned for LiveRead<R> {
    fn reason(&self) -> impl Reason {
        &self.reason
    }
}

impl<R: Reason> Display for LiveRead<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, reason } = self;
        write!(f, "{step} ({reason})")
    }
}

/// The next stage of a sync whose plan may need a live read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<R, P> {
    /// Read it, then plan again.
    Ask(LiveRead<R>),
    Execute(P),
}

impl<R: Reason, P: Reasoned> Next<R, P> {
    /// The stage as `preview` shows it.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Ask(live_read) => stage(live_read),
            Self::Execute(plan) => stage(plan),
        }
    }
}

impl<R: Reason, P: Display> Display for Next<R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(live_read) => live_read.fmt(f),
            Self::Execute(plan) => plan.fmt(f),
        }
    }
}

/// Why objects are adopted or released.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Claiming {
    /// The owner's selector matches those that have no controller, and does not match the others, which it controls.
    Selector {
        /// How many become its own.
        adopt: usize,
        /// How many are its own no more.
        release: usize,
    },
}

impl Display for Claiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Selector { adopt, release } = self;
        write!(f, "the selector matches {adopt} more and {release} fewer")
    }
}

impl Reason for Claiming {}

impl<T: Object> Reasoned for Claim<T> {
    fn reason(&self) -> impl Reason {
        Claiming::Selector { adopt: self.adopt.len(), release: self.release.len() }
    }
}
