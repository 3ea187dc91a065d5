//! The status of a `ReplicationController` after a sync: the computation both kinds share, without terminatingReplicas.
//!
//! Left out: writing it, which is [`crate::apply`]'s.

pub use shared::replicas::status::{ReplicaStatus, next_check, next_status};
