//! Keeps as many pods of each `ReplicationController` as it asks for.
//!
//! Reading order: [`objects`] (the view) → [`controller`] (one sync) → [`observe`] → [`plan`] → [`apply`] → [`status`].
//! Upstream: `pkg/controller/replication`, which converts to ReplicaSets and runs `pkg/controller/replicaset`. What both
//! kinds have in common is [`shared::replicas`]; here is what is its own: a selector that is a plain map, a status without
//! terminatingReplicas, and pods that are not ranked by node.

pub mod apply;
pub mod controller;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
