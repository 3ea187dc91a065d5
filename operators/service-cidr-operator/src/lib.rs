//! Protects each ServiceCIDR by a finalizer, and lets it go when each of its allocated addresses is in another one too.
//!
//! Reading order: [`objects`] (the views of ServiceCIDRs and IPAddresses) → [`controller`] (one sync; its `changes`
//! say what leads to it) → [`observe`] → [`plan`] → [`apply`] → [`status`] (the condition Ready). Left out: allocating
//! addresses, which the apiserver does.
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
