//! Counts the usage of each ResourceQuota.
//!
//! Reading order: [`objects`] (a quota, and the few facts of each object that counts) → [`controller`] (which kinds
//! are followed, and which changes lead to a count) → [`observe`] → [`plan`] → [`apply`] → [`status`].
//! Upstream: `pkg/controller/resourcequota` and `pkg/quota/v1/evaluator/core`.
//! Left out: refusing what is too much, which is the apiserver's.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
