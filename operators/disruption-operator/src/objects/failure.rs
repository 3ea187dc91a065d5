//! The reason why the pods of a budget cannot be counted.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// Only a change of the budget or its pods can end it. Other failures are retried.
    pub is_lasting: bool,
}

impl Failure {
    /// A failure that lasts until something changes.
    pub fn lasting(message: String) -> Self {
        Self { message, is_lasting: true }
    }

    /// A failure that a retry may end.
    pub fn passing(error: &impl fmt::Display) -> Self {
        Self { message: error.to_string(), is_lasting: false }
    }
}
