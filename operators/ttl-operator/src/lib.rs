//! Tells kubelets, by an annotation of each Node, how long they may cache ConfigMaps and Secrets: longer in larger
//! clusters.
//!
//! Reading order: [`objects`] (what is read of a Node) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`], with [`memory`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/ttl`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod objects;
pub mod observe;
pub mod plan;
