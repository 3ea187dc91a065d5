//! The tree of syncs that followed each change.

use jiff::Timestamp;
use serde::Serialize;
use shared::api::explain::{Outcome, Version};

/// The stories of an object, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    pub subject: String,
    pub namespace: String,
    pub time: Timestamp,
    pub stories: Vec<Story>,
    pub missing: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    pub origin: Origin,
    pub syncs: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Origin {
    Change {
        object: Version,
        generation: Option<i64>,
        by: Option<Writer>,
    },
    /// The operator that wrote it has no record of the decision.
    Lost {
        object: Version,
        by: Writer,
    },
    NoChange,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Writer {
    /// `kubectl-edit`, `kubelet`, `deployment-operator`.
    pub manager: String,
    pub time: Timestamp,
    /// The object changed again; this is the newest known change before the sync.
    pub is_inferred: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub operator: String,
    pub queue: String,
    pub key: String,
    pub time: Timestamp,
    /// Milliseconds since the sync above began; negative if clocks differ.
    pub since_cause: Option<i64>,
    pub decided: String,
    pub count: u64,
    pub outcome: Outcome,
    pub error: Option<String>,
    pub cause: Option<Version>,
    pub link: Link,
    /// Without writes that changed nothing.
    pub wrote: Vec<Version>,
    pub more_written: u64,
    pub followed: Vec<Self>,
}

/// The relation of a sync to the one above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Link {
    First,
    /// Its cause is the version that the sync above wrote.
    Exact,
    /// Its cause is a later version, after the last recorded write.
    Later {
        wrote: u64,
        by: Option<Writer>,
    },
    /// The sync above created the object without naming it.
    Unnamed,
}

impl Step {
    pub(super) fn all(&self) -> impl Iterator<Item = &Self> {
        let mut open = vec![self];
        std::iter::from_fn(move || {
            let step = open.pop()?;
            open.extend(&step.followed);
            Some(step)
        })
    }

    /// Whether neither it nor what followed wrote or failed.
    pub(super) fn is_idle(&self) -> bool {
        self.all().all(|step| step.wrote.is_empty() && step.more_written == 0 && step.error.is_none())
    }
}
