//! The end of old revisions, as a decision.
//!
//! Left out: which revisions are in use, which each owner knows, and how many are kept besides them, which
//! [`super::history`] says.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::ControllerRevision;
use crate::api::list::list;
use crate::working::decisions::{self, Reasoned};

#[derive(Clone, Debug, PartialEq)]
pub struct Truncation {
    pub delete: Vec<Arc<ControllerRevision>>,
    pub reason: TruncationReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TruncationReason {
    /// No pod is of them, and no more are kept.
    HistoryLimit {
        /// How many are kept.
        limit: i32,
    },
}

impl Reasoned for Truncation {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl decisions::Reason for TruncationReason {}

/// `delete revisions web-7cd77cbbd9 (beyond the history limit of 2)`.
impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delete, reason } = self;
        let names = list(delete, |revision| revision.metadata.name().to_owned());
        write!(f, "delete revisions {names} ({reason})")
    }
}

impl fmt::Display for TruncationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::HistoryLimit { limit } = self;
        write!(f, "beyond the history limit of {limit}")
    }
}
