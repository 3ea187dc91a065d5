//! Decisions about claims and volumes: upstream's cases under their Go names, and rules for any of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod binder;
mod classes;
mod fit;
mod fixtures;
mod properties;
mod reclaim;
mod recycle;
