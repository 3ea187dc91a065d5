//! Watches the health of nodes: a node that is not heard from for its grace period becomes `Unknown`, nodes get the
//! taints that follow from their conditions, and the pods of a lost node are marked as not ready.
//!
//! Reading order: [`objects`] (the fields of nodes, Leases and pods) → [`controller`] (the sync of a node; `rounds` look
//! at all nodes together, `pods` mark pods) → [`observe`], with [`memory`] (when a node was last heard from) → [`plan`] →
//! [`apply`] → [`status`].
//!
//! Upstream: `pkg/controller/nodelifecycle`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
