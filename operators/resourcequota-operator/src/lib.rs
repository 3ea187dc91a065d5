//! Counts the usage of each ResourceQuota.
//!
//! Reading order: [`objects`] (a quota, and the few facts of each object that counts) → [`controller`] (which kinds
//! are watched, and which changes lead to a count) → [`observe`], with [`memory`] → [`plan`] → [`apply`] → [`status`].
//! Upstream: `pkg/controller/resourcequota` and `pkg/quota/v1/evaluator/core`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
