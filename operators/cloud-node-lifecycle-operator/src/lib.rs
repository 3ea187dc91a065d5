//! Deletes Nodes whose instances do not exist in the cloud any more, and taints those whose instances are shut down.
//!
//! Reading order: [`objects`] (what is read of a Node) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`], which asks the provider, with [`memory`] → [`plan`] → [`apply`].
//!
//! Upstream: `staging/src/k8s.io/cloud-provider/controllers/nodelifecycle`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod objects;
pub mod observe;
pub mod plan;
