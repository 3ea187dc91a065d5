//! Mirrors the Endpoints of Services without a selector in EndpointSlices, for clients that read only slices.
//!
//! Reading order: [`objects`] (what is read) → `controller` (one sync; its `changes` say what leads to it) → [`observe`] →
//! [`plan`], with [`plan::reconciler`] (which slices are kept, created or deleted), [`plan::reconciler_helpers`] (the
//! desired endpoints) and [`plan::utils`] (one endpoint, and the labels of a slice) → `apply`.
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
