//! Deletes pods whose nodes have taints with the effect `NoExecute`: at once if a pod does not tolerate one of them, and
//! after a while if it tolerates all of them, but not forever.
//!
//! Reading order: [`objects`] (the fields of pods and nodes) → [`controller`] (the sync of a pod; the sync of a node
//! finds pods to sync) → [`observe`], with [`memory`] (the pending deletions) → [`plan`] → [`apply`] → [`status`] (the
//! condition that a pod gets before it is deleted).
//!
//! Upstream: `pkg/controller/tainteviction`.

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
