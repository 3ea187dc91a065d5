//! Lets a PodGroup go once each of its pods has ended or is gone.
//!
//! Reading order: [`objects`] (the views of groups and pods) → [`controller`] (one sync; its `changes` say what leads to
//! it) → [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/scheduling/podgroupprotection`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
