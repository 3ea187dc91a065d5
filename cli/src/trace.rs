//! Chains of changes across operators: an edit, the syncs that followed, their writes, and the syncs after those.
//!
//! Joined from the decisions that operators remember, without a mark on any object. Left out: asking for them, which is
//! `gather`'s, and decisions that they don't remember; that these are missing is said.

pub(crate) mod gather;
mod join;
mod text;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::explain::{Outcome, Version};

pub use join::join;

/// The stories of one object and of those that hang on it, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// `deployment/web`.
    pub subject: String,
    /// `""` for an object that has none.
    pub namespace: String,
    /// When this was known.
    pub time: Timestamp,
    /// Each from its origin on.
    pub stories: Vec<Story>,
    /// The operators that were not asked, and why.
    pub missing: Vec<String>,
}

/// One change, and all that followed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// The beginning of the story.
    pub origin: Origin,
    /// The syncs that this led to.
    pub syncs: Vec<Step>,
}

/// The beginning of a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Origin {
    /// A change of an object that no decision which is remembered has written.
    Change {
        /// The object after the change.
        object: Version,
        /// Its `metadata.generation`, where that is the newest version.
        generation: Option<i64>,
        /// The writer of the change; none where nothing tells.
        by: Option<Writer>,
    },
    /// A change that an operator made by a decision it remembers no more, or was not asked about.
    Lost {
        /// The object after the change.
        object: Version,
        /// Which operator.
        by: Writer,
    },
    /// No change: a timer, a retry, or the start of work.
    NoChange,
}

/// The writer of a change of an object, by its `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Writer {
    /// `kubectl-edit`, `kubelet`, `deployment-operator`.
    pub manager: String,
    /// When, to the second.
    pub time: Timestamp,
    /// The object was changed again, so that this is only the newest change before the sync that is still known.
    pub is_inferred: bool,
}

/// One sync, or several in a row that decided the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Whose.
    pub operator: String,
    /// Of this queue.
    pub queue: String,
    /// Of this key.
    pub key: String,
    /// When the last of them began.
    pub time: Timestamp,
    /// So many milliseconds after the sync that it follows began; less than none where clocks differ.
    pub since_cause: Option<i64>,
    /// The decision's text.
    pub decided: String,
    /// How many decided the same; of more than one, the cause may be that of an earlier one.
    pub count: u64,
    /// How the last one went.
    pub outcome: Outcome,
    /// Why it failed.
    pub error: Option<String>,
    /// The change that led to it.
    pub cause: Option<Version>,
    /// How sure it is that it follows the sync above it.
    pub link: Link,
    /// The versions that it wrote; writes that changed nothing are not here.
    pub wrote: Vec<Version>,
    /// So many writes more, which are not named.
    pub more_written: u64,
    /// The syncs that followed.
    pub followed: Vec<Self>,
}

/// The connection of a sync with the one above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Link {
    /// It is the first of its story.
    First,
    /// Its cause is the very version that the sync above has written.
    Exact,
    /// Its cause is a later version of an object that the sync above was the last to write, of all that are remembered.
    Later {
        /// The version that was written.
        wrote: u64,
        /// The last writer of the object since.
        by: Option<Writer>,
    },
    /// Its cause belongs to the object of the sync above, which has created more than it names.
    Unnamed,
}

impl Step {
    /// Itself, and all that followed.
    fn all(&self) -> impl Iterator<Item = &Self> {
        let mut open = vec![self];
        std::iter::from_fn(move || {
            let step = open.pop()?;
            open.extend(&step.followed);
            Some(step)
        })
    }

    /// Whether nothing came of it or of the syncs that followed, not even a failure.
    fn is_idle(&self) -> bool {
        self.all().all(|step| step.wrote.is_empty() && step.more_written == 0 && step.error.is_none())
    }
}

#[cfg(test)]
mod tests;
