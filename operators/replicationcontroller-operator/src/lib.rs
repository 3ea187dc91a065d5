//! Keeps as many pods of each `ReplicationController` as it asks for.
//!
//! Reading order: [`objects`] (the view) → [`controller`] (the wiring) → [`sync`] → [`observe`] → [`plan`] → [`apply`] →
//! [`status`]. The last five are the same for a `ReplicationController` and a ReplicaSet, so they are
//! [`shared::controllers::replicas`]'. Its own are a selector that is a plain map, a status without terminatingReplicas,
//! and pods that are not ranked by node.
//! Upstream: `pkg/controller/replication`, which converts to ReplicaSets and runs `pkg/controller/replicaset`.
//! Left out: pods of one that is being deleted (the garbage collector's).

pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;

pub use shared::controllers::replicas::{apply, memory, observe, plan, status, sync};
