//! Watches the health of nodes: a node that is not heard of for a while becomes `Unknown`, nodes get the taints that
//! their conditions ask for, and the pods of a silent node are marked as not ready.
//!
//! Reading order: [`objects`] (the fields of nodes, Leases and pods) → [`controller`] (the sync of a node; `rounds`
//! look at all nodes together, `pods` mark) → [`observe`] (with the memory of when a node was last heard of) → [`plan`]
//! → [`apply`] → [`status`].
//!
//! Upstream: `pkg/controller/nodelifecycle`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
