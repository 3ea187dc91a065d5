//! What is decided for a ReplicaSet, and what is said of it: tables after upstream's, and properties.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod fixtures;
mod metrics;
mod plan;
mod properties;
mod status;
