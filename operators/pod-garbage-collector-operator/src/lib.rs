//! Deletes pods that nothing else deletes: those of nodes that are gone or out of service, those that were never bound to
//! a node, and the oldest terminated ones once there are too many.
//!
//! Reading order: [`objects`] (the read fields of pods and nodes) → [`controller`] (rounds, and missing nodes) →
//! [`observe`] → [`plan`] → [`apply`] → [`status`] (the status of a pod before it is deleted).
//!
//! Upstream: `pkg/controller/podgc`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
