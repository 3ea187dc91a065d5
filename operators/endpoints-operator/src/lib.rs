//! Lists the pods of each Service in one object of its name, its Endpoints: which of them are ready, and on which ports.
//!
//! Reading order: [`objects`] (what is read) → [`observe`] (caches, a live read, and what is remembered between syncs) →
//! [`plan`], with [`plan::subsets`] (which pod is listed, and how many are) and [`plan::util`] (their order) → `apply`
//! (creates, changes, deletes) → `controller` (which event wakes which Service, one sync, and the look for what is left
//! over). Left out: Services without a selector, whose Endpoints somebody else writes, and EndpointSlices.
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
