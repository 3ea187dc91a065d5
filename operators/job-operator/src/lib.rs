//! Runs pods of each Job until enough have succeeded, and counts each of them once.
//!
//! Reading order: [`objects`] (the views) → [`controller`] (one sync) → [`observe`], with [`memory`] → [`plan`] →
//! [`apply`] → [`status`]. A sync decides three times, because each decision depends on the writes before it: on pods
//! ([`plan`]), on the pods to count ([`plan::tracking`]), and on the last status ([`status`]).
//!
//! Upstream: `pkg/controller/job`, without its alpha gate `WorkloadWithJob`.

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
