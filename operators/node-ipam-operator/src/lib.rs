//! Gives each Node the CIDRs of its pods: out of each range of `--cluster-cidr` one block that no other Node has.
//!
//! Reading order: [`objects`] (the view of a Node, and CIDRs) → [`controller`] (one sync; its `changes` say when it is
//! due) → [`observe`] (its `pool` knows the taken blocks) → [`plan`] (its `cidr_set` finds a free block) → [`apply`].
//! Left out: a status room, because only the spec is written, and the allocators of clouds, which
//! kube-controller-manager has no more.
//!
//! Upstream: `pkg/controller/nodeipam`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
