//! The causes of an object's state, by kind of object. In JSON they form one list, told apart by `case`.

pub mod batch;
pub mod cron;
pub mod deletion;
pub mod operators;
pub mod refusal;
pub mod service;
mod state;
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

pub use state::State;

/// The cause of an object's state.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cause {
    Workload(Workload),
    Batch(Batch),
    Cron(Cron),
    Services(Services),
    Deletion(Deletion),
    Operators(Operators),
}

impl Cause {
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

    /// Sentence for the first line, after the object's name and a colon.
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
