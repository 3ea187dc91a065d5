//! Keeps a route to the pods of each Node in the cloud's network, and shows in a condition of the Node whether it has its routes.
//!
//! Reading order: [`objects`] (the view of a Node, and a route) → [`controller`] (one sync of a Node; its `rounds` list the
//! routes, and its `changes` say when a Node is due) → [`observe`], with [`memory`] (the routes as they were listed) →
//! [`plan`] → [`apply`] → [`status`].
//!
//! Upstream: `k8s.io/cloud-provider/controllers/route`.

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
