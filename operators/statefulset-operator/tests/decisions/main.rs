//! The decisions for a StatefulSet, and its status and events: tables after upstream's, and properties.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod changes;
mod claims;
mod fixtures;
mod history;
mod order;
mod parallel;
mod properties;
mod rejected;
mod rolling;
mod status;
mod stuck;
mod utils;
mod views;
