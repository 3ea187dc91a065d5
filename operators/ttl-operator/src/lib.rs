//! Tells kubelets, by an annotation of each Node, for how long they may cache ConfigMaps and Secrets: the longer, the more
//! Nodes there are.
//!
//! Reading order: [`objects`] (what is read of a Node) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`] → [`plan`] → [`apply`]. Left out: a status room, because nothing is written but the annotation.
//!
//! Upstream: `pkg/controller/ttl`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
