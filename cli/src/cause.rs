//! The one cause that is named first: a case for each way to be stuck, on the way, or at rest, with what belongs to it.
//!
//! Each group of cases is a room; in JSON they are one list, told apart by `case`.
//! Left out: how a cause is found.

pub mod batch;
pub mod cron;
pub mod deletion;
pub mod operators;
pub mod refusal;
pub mod service;
pub mod trouble;
pub mod workload;

use jiff::Timestamp;
use serde::Serialize;

use batch::Batch;
use cron::Cron;
use deletion::Deletion;
use operators::Operators;
use service::Services;
use workload::Workload;

/// Whether anybody has to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It is as it should be, or as somebody wants it.
    AtRest,
    /// It gets there by itself.
    InProgress,
    /// It does not.
    Stuck,
}

/// Why an object is as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cause {
    /// Of what keeps pods, and of pods.
    Workload(Workload),
    /// Of Jobs.
    Batch(Batch),
    /// Of `CronJobs`.
    Cron(Cron),
    /// Of Services.
    Services(Services),
    /// Of what is being deleted, and of owners.
    Deletion(Deletion),
    /// Of those who do the work.
    Operators(Operators),
}

impl Cause {
    /// Whether anybody has to do something.
    pub fn state(&self) -> State {
        match self {
            Self::Workload(cause) => cause.state(),
            Self::Batch(cause) => cause.state(),
            Self::Cron(cause) => cause.state(),
            Self::Services(cause) => cause.state(),
            Self::Deletion(cause) => cause.state(),
            Self::Operators(_) => State::Stuck,
        }
    }

    /// In words, after the object's name and a colon.
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::Workload(cause) => cause.text(now),
            Self::Batch(cause) => cause.text(now),
            Self::Cron(cause) => cause.text(now),
            Self::Services(cause) => cause.text(),
            Self::Deletion(cause) => cause.text(now),
            Self::Operators(cause) => cause.text(now),
        }
    }
}

/// Makes a group's case a cause.
macro_rules! into_cause {
    ($($group:ident),*) => {
        $(impl From<$group> for Cause {
            fn from(case: $group) -> Self {
                Self::$group(case)
            }
        })*
    };
}

into_cause!(Workload, Batch, Cron, Services, Deletion, Operators);
