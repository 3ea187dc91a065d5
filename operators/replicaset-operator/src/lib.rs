//! Keeps as many pods of each ReplicaSet as it asks for.
//!
//! Reading order: [`objects`] (the view) → [`controller`] (the wiring) → [`sync`] → [`observe`] → [`plan`] → [`apply`] →
//! [`status`]. The last five are the same for a ReplicaSet and a `ReplicationController`, so they are
//! [`shared::controllers::replicas`]'; here is what is a ReplicaSet's own. Upstream: `pkg/controller/replicaset`.
//! Left out: templates and rollouts (the Deployment's), and pods of a ReplicaSet that is being deleted (the garbage
//! collector's).

pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;

pub use shared::controllers::replicas::{apply, memory, observe, plan, status, sync};
