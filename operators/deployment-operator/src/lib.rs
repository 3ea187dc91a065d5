//! deployment-operator: keeps the pods of each Deployment at its template, by scaling one ReplicaSet up and others down.
//!
//! One sync: [`observe`] → [`plan`] → [`apply`] → [`status`]; [`controller`] wires them to informers and the queue.
//!
//! Upstream: `pkg/controller/deployment`.

pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
