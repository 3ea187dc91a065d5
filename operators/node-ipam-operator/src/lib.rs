//! Assigns CIDRs to each Node for its pods: one free block of each range of `--cluster-cidr`.
//!
//! Reading order: [`objects`] (the view of a Node, CIDRs, and the blocks of a range) → [`controller`] (one sync; its
//! `changes` say when it is due) → [`observe`], with [`memory`] (the taken blocks) → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/nodeipam`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
