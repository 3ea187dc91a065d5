//! Mirrors Endpoints that people or programs write for a Service without a selector in EndpointSlices, for all who read
//! only these.
//!
//! Reading order: [`objects`] (what is read) → [`observe`] (caches, and what is remembered of own writes) → [`plan`], with
//! [`plan::reconciler`] (which slice is kept, made or deleted), [`plan::reconciler_helpers`] (the endpoints that there
//! are to be) and [`plan::utils`] (one endpoint, one slice's labels) → `apply` (creates, updates, deletes) →
//! `controller` (which event wakes which key, and one sync).
//! Left out: Services with a selector, whose slices somebody else writes.
//!
//! Upstream: `pkg/controller/endpointslicemirroring`.

mod apply;
mod controller;
pub mod facts;
pub mod flags;
mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;

pub use controller::EndpointSliceMirroringOperator;
