//! Initializes the Nodes of kubelets that leave it to a cloud: provider ID, labels, addresses, and then the end of the
//! taint that keeps pods away. Keeps the addresses of all Nodes.
//!
//! Reading order: [`objects`] (what is read of a Node) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`], which asks the provider → [`plan`] → [`apply`], with the patches of [`status`].
//!
//! Upstream: `staging/src/k8s.io/cloud-provider/controllers/node`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
