//! Whether an object needs attention.

use serde::Serialize;

/// Whether somebody has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// As it should be.
    AtRest,
    /// Changing without help.
    InProgress,
    /// In need of help.
    Stuck,
}
