//! The decisions for a DaemonSet, and its status and events: tables after upstream's, and properties.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod changes;
mod fixtures;
mod history;
mod manage;
mod nodes;
mod properties;
mod rolling;
mod status;
mod views;
