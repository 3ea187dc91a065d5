//! What is decided for a ReplicaSet, and what is said of it: tables after upstream's, and properties.

mod fixtures;
mod plan;
mod properties;
mod status;
