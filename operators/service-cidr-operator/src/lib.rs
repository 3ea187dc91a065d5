//! Protects each ServiceCIDR with a finalizer until each of its allocated addresses is in another ServiceCIDR too.
//!
//! Reading order: [`objects`] (the views of ServiceCIDRs and IPAddresses) → [`controller`] (one sync; its `changes`
//! say what leads to it) → [`observe`] → [`plan`] → [`apply`] → [`status`] (the condition Ready).
//!
//! Upstream: `pkg/controller/servicecidrs`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
