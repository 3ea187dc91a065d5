//! What one sync does about a `ReplicationController`'s pods, and why: the decision both kinds share.
//!
//! Left out: anything of a `ReplicationController`'s own.

pub use shared::replicas::plan::{BURST_REPLICAS, Deletion, Plan, Reason, plan};
