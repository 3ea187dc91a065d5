//! The status of a ReplicaSet after a sync: the computation both kinds share, terminatingReplicas included.
//!
//! Left out: writing it, which is [`crate::apply`]'s.

pub use shared::replicas::status::{ReplicaStatus, next_check, next_status};
