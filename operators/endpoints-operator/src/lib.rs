//! Lists the pods of each Service in its Endpoints: their addresses, their ports, and whether they are ready.
//!
//! Reading order: [`objects`] (what is read) → `controller` (one sync; its `changes` say what leads to it) → [`observe`] →
//! [`plan`], with [`plan::subsets`] (the listed pods) and [`plan::util`] (their order) → `apply`.
//!
//! Upstream: `pkg/controller/endpoint` and `pkg/api/v1/endpoints`.

mod apply;
mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;

pub use controller::EndpointsOperator;
