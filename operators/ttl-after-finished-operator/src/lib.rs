//! Deletes finished Jobs when their time to live is over.
//!
//! Reading order: [`objects`] (what is read of a Job) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/ttlafterfinished`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
