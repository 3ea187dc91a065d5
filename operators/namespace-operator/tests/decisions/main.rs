//! The decisions about a namespace, and its status: tables after upstream's, and properties.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod fixtures;
mod plan;
mod status;
