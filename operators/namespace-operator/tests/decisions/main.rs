//! What is decided for a namespace, and what is said of it: tables after upstream's, and properties.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod fixtures;
mod plan;
mod status;
