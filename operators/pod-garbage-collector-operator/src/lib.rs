//! Deletes pods that nobody else will ever delete: of nodes that are gone or out of service, of no node at all, and the
//! oldest ended ones once there are too many.
//!
//! Reading order: [`objects`] (what is read of pods and nodes) → [`controller`] (rounds, and nodes that are missing) →
//! [`observe`] → [`plan`] → [`apply`] → [`status`] (how a pod is marked before it goes).
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
