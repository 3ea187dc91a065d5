//! Keeping a number of pods alike: what ReplicaSets and ReplicationControllers share, and in parts Jobs and DaemonSets.
//!
//! Reading order: [`pod`] (the view) → [`plan`] (what to do) → [`slow_start`] (in which batches) → [`status`] (what came
//! of it). Left out: the kinds themselves, which are their operators', and every call to the apiserver.

pub mod plan;
pub mod pod;
pub mod slow_start;
pub mod status;
