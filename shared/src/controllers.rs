//! Code that several controllers share above the runtime. Code with a single user stays with that operator.

pub mod claims;
pub mod pod_control;
pub mod replicas;
