//! Lists the pods of each Service in EndpointSlices: which of them serve, where they are, and for whom they are meant.
//!
//! Reading order: [`objects`] (what is read) → [`observe`] (caches, and what is remembered between syncs) → [`plan`], with
//! [`plan::reconciler`] (which endpoints go into which slice), [`plan::topologycache`] and [`plan::trafficdist`] (hints) →
//! `apply` (creates, updates, deletes) → `controller` (which event wakes which Service, and one sync).
//! Left out: Services without a selector, whose slices somebody else writes, and `v1` Endpoints.
//!
//! Upstream: `pkg/controller/endpointslice` and `staging/src/k8s.io/endpointslice`.

mod apply;
mod controller;
pub mod facts;
pub mod flags;
mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;

pub use controller::EndpointSliceOperator;
