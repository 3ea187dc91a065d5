//! Counts for each PodDisruptionBudget how many of its pods may be evicted, and takes back the condition of pods whose
//! disruption never came.
//!
//! Reading order: [`objects`] (the fields that are read) → [`controller`] (one sync; its `changes` say which change
//! leads to it) → [`observe`], with [`observe::scales`] (how many pods the owners ask for) → [`plan`] → [`apply`] →
//! [`status`].
//! Left out: evictions, which the apiserver allows or refuses by the status that is written here.
//!
//! Upstream: `pkg/controller/disruption`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
