//! What is decided about claims, pods and PodGroups, and which changes lead to a sync: upstream's cases, and properties
//! of any users.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod changes;
mod claims;
mod fixtures;
mod metrics;
mod properties;
mod users;
