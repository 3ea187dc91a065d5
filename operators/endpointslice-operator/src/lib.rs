//! Lists the pods of each Service in EndpointSlices: their addresses, their readiness, their zones, and hints for clients.
//!
//! Reading order: [`objects`] (what is read) → `controller` (one sync; its `changes` say what leads to it) → [`observe`],
//! with [`memory`] → [`plan`], with [`plan::reconciler`] (which endpoints go into which slice), [`plan::topologycache`] and
//! [`plan::trafficdist`] (hints) → `apply`.
//!
//! Upstream: `pkg/controller/endpointslice` and `staging/src/k8s.io/endpointslice`.

mod apply;
mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;

pub use controller::EndpointSliceOperator;
