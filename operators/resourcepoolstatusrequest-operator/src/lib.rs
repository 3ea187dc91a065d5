//! Answers ResourcePoolStatusRequests with the devices of their pools, and deletes old requests.
//!
//! Reading order: [`objects`] (the views of requests, slices and claims) → [`controller`] (one sync; its `changes` say what
//! leads to it) → [`observe`] → [`plan`] → [`apply`] → [`status`] → [`metrics`].
//!
//! Upstream: `pkg/controller/resourcepoolstatusrequest`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
