//! The decisions about a ReplicaSet, and its status: tables after upstream's, and properties.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod fixtures;
mod metrics;
mod plan;
mod properties;
mod status;
