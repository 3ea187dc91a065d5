//! Rolls the pods of each Deployment from one template to the next, by scaling one ReplicaSet up and others down.
//!
//! Reading order: [`objects`] (the views) → [`controller`] (one sync) → [`observe`] → [`plan`] → [`apply`] → [`status`].
//! Upstream: `pkg/controller/deployment`.
//! Left out: pods, which are each ReplicaSet's own controller's.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
