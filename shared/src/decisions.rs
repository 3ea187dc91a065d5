//! The latest decisions. (Being written.)

use std::fmt::Display;

use jiff::Timestamp;

use crate::object::Key;

/// A ring of the latest decisions; cheap to clone.
#[derive(Clone, Default)]
pub struct Decisions;

impl Decisions {
    /// Notes what was decided for a key.
    pub fn record(&self, now: Timestamp, key: &Key, plan: &dyn Display) {
        tracing::debug!(%now, %key, %plan);
    }
}
