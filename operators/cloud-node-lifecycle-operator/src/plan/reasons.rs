//! The reasons of decisions, for programs and in words.

use std::fmt;

use serde::Serialize;
use shared::api::time::Time;
use shared::working::decisions;

use crate::objects::Ready;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The node was deleted meanwhile.
    Gone,
    Ready,
    Exists {
        /// Its condition `Ready`.
        ready: Ready,
    },
    ShutDown {
        /// Its condition `Ready`.
        ready: Ready,
    },
    /// The provider does not know it.
    Absent {
        /// Since when the provider has said so.
        since: Time,
    },
    /// The provider does not know it, and knows no other node.
    Doubtful {
        /// Since when the provider has said so.
        since: Time,
        /// How many other nodes it does not know.
        others: usize,
    },
    /// The provider does not know it, and it is being deleted.
    Deleting,
    /// The provider wants to be asked again later.
    Later {
        message: String,
    },
    /// The provider does not know instances.
    NotSupported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Question {
    NotReady {
        /// Its condition `Ready`.
        ready: Ready,
    },
    /// The provider does not know it.
    Absent {
        /// Since when the provider has said so.
        since: Time,
    },
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Question {}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "ready",
            Self::False => "not ready",
            Self::Unknown => "unknown",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the node is gone"),
            Self::Ready => f.write_str("ready"),
            Self::Exists { ready } => write!(f, "{ready}, its instance exists"),
            Self::ShutDown { ready } => write!(f, "{ready}, its instance is shut down"),
            Self::Absent { since } => write!(f, "its instance does not exist, first seen at {since}"),
            Self::Doubtful { since, others } => {
                write!(f, "the provider knows neither its instance since {since} nor any of {others} other nodes")
            }
            Self::Deleting => f.write_str("its instance does not exist, and it is being deleted"),
            Self::Later { message } => write!(f, "the provider asks for patience: {message}"),
            Self::NotSupported => f.write_str("the provider does not support instances"),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady { ready } => write!(f, "{ready}"),
            Self::Absent { since } => write!(f, "its instance does not exist, first seen at {since}"),
        }
    }
}
