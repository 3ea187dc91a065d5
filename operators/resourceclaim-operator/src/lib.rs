//! Makes the ResourceClaims of pods and PodGroups from their templates, reserves claims for pods that were bound past
//! the scheduler, and frees claims whose users have ended.
//!
//! Reading order: [`objects`] (the views) → [`controller`] (one sync of a claim; those of pods and PodGroups are below it,
//! and its `changes` say what leads to each) → [`memory`] → [`observe`] → [`plan`] → [`apply`] → [`status`].
//!
//! Upstream: `pkg/controller/resourceclaim`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
