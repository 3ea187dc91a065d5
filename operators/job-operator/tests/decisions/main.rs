//! The decisions about a Job, and its status: tables after upstream's, and properties.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod changes;
mod fixtures;
mod index_limits;
mod indexed;
mod metrics;
mod new_pod;
mod orphan;
mod policies;
mod properties;
mod pure;
mod reason;
mod robustness;
mod sync_job;
mod tracking;
mod views;
mod world;
