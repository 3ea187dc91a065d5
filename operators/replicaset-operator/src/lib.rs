//! Keeps as many pods of each ReplicaSet as it asks for.
//!
//! Reading order: [`objects`] (the view) → [`controller`] (one sync) → [`observe`] → [`plan`] → [`apply`] → [`status`].
//! Upstream: `pkg/controller/replicaset`. What a ReplicaSet has in common with a `ReplicationController`, which is nearly
//! all, is [`shared::replicas`]; here is what is its own.
//! Left out: templates and rollouts (the Deployment's), and pods of a ReplicaSet that is being deleted (the garbage
//! collector's).

pub mod apply;
pub mod controller;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
