//! Deletes what its owners leave behind.
//!
//! Reading order: [`objects`] (what is read of an object) → [`graph`] (who owns whom) → [`monitors`] (what feeds it) →
//! [`collector`] (what all share) → [`controller`] (wiring) → [`attempt_to_delete`] and [`attempt_to_orphan`] (one
//! object each) → [`patches`] (what is written).
//! Upstream: `pkg/controller/garbagecollector`.
//! Left out: status. An object's fate is its own; nothing is written about it.

pub mod attempt_to_delete;
pub mod attempt_to_orphan;
pub mod collector;
pub mod controller;
pub mod flags;
pub mod graph;
pub mod monitors;
pub mod objects;
pub mod patches;
