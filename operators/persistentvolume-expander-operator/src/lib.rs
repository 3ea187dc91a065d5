//! Hands the expansion of each volume to the external controller that expands it.
//!
//! Reading order: [`objects`] (the views of claims and volumes) → [`controller`] (one sync; its `changes` say what leads
//! to it) → [`observe`] → [`plan`] → [`apply`] → [`status`].
//!
//! Upstream: `pkg/controller/volume/expand`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
