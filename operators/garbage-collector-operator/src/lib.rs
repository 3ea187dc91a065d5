//! Deletes what its owners leave behind.
//!
//! Reading order: [`objects`] (what is read of an object) → [`graph`] (who owns whom) → [`controller`] (what feeds the
//! graph, and one controller for each queue) → [`observe`] → [`plan`] → [`apply`] (one attempt on one object).
//! Upstream: `pkg/controller/garbagecollector`.
//! Left out: status. Nothing is written about an object but its owners, its finalizers and its end.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod graph;
pub mod objects;
pub mod observe;
pub mod plan;
