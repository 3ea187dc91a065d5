//! Deletes objects whose owners no longer exist.
//!
//! Reading order: [`objects`] (the read fields of an object) → [`graph`] (owners and dependents) → [`controller`] (the
//! monitors that feed the graph, and a controller for each queue) → [`observe`], with [`memory`] (the state of the
//! kinds) → [`plan`] → [`apply`]. There is no status: only owner references and finalizers are written, and objects
//! deleted.
//!
//! Upstream: `pkg/controller/garbagecollector`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod graph;
pub mod memory;
pub mod objects;
pub mod observe;
pub mod plan;
