//! The view of a Node: the CIDRs of its pods, and whether it is being deleted.
//!
//! Left out: `podCIDR`, which the apiserver keeps as the first of `podCIDRs`, and all that heartbeats write.

pub mod cidr_set;

use std::fmt::Display;

use serde::Deserialize;
use shared::api::cidr::PodCidr;
use shared::api::list::list;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::NODES;

/// The reasons of events, which are also the new status that their messages tell.
///
/// Upstream: `pkg/controller/nodeipam/ipam/range_allocator.go`.
pub mod reasons {
    pub const CIDR_NOT_AVAILABLE: &str = "CIDRNotAvailable";
    /// The CIDRs of a Node could not be written.
    pub const CIDR_ASSIGNMENT_FAILED: &str = "CIDRAssignmentFailed";
}

#[derive(Debug, PartialEq, Deserialize)]
pub struct Node {
    pub metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: NodeSpec,
}

shared::view!(Node, NODES);

#[derive(Debug, Default, PartialEq, Deserialize)]
pub struct NodeSpec {
    /// The CIDRs of its pods, at most one of each family. Once they are set, the apiserver refuses others.
    #[serde(rename = "podCIDRs", default, deserialize_with = "null_as_default")]
    pub pod_cidrs: Box<[PodCidr]>,
}

impl Node {
    pub fn pod_cidrs(&self) -> &[PodCidr] {
        &self.spec.pod_cidrs
    }
}

/// `10.0.0.0/24, fd00::/64`.
pub fn joined<T: Display>(cidrs: &[T]) -> String {
    list(cidrs, T::to_string)
}
