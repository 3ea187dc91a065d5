//! What one sync does about a ReplicaSet's pods, and why: the decision both kinds share.
//!
//! Left out: anything of a ReplicaSet's own. That its pods are ranked by how many of its Deployment's pods share their
//! node follows from what [`crate::observe`] reads.

pub use shared::replicas::plan::{BURST_REPLICAS, Deletion, Plan, Reason, plan};
