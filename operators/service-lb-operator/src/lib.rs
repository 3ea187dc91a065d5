//! Keeps a load balancer of the cloud for each Service of type LoadBalancer, and its addresses in the Service's status.
//!
//! Reading order: [`objects`] (the views of Services and Nodes, with their JSON for the provider) → [`controller`] (one
//! sync; its `changes` say what leads to it) → [`memory`] (what the provider was last told) → [`balancers`] (the provider) → [`observe`] → [`plan`] →
//! [`apply`] (calls and patches) → [`status`] (the addresses).
//!
//! In each room `pools` is for a cluster without a cloud: Services get their addresses from pools, and no provider is asked.
//!
//! Upstream: `k8s.io/cloud-provider/controllers/service`.

pub mod apply;
pub mod balancers;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
