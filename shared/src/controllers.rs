//! What several controllers share above the runtime; what has one user only stays with that operator.

pub mod claims;
pub mod pod_control;
pub mod replicas;
