//! Counts how many pods of each PodDisruptionBudget may be evicted, and resets stale conditions DisruptionTarget.
//!
//! Reading order: [`objects`] (the fields read) → [`controller`] (one sync; `changes` says which change leads to it) →
//! [`memory`] → [`observe`], with [`observe::scales`] (the scales of owners) → [`plan`] → [`apply`] → [`status`].
//!
//! Upstream: `pkg/controller/disruption`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
