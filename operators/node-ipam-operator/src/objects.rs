//! The view of a Node: the CIDRs of its pods, and whether it is being deleted.
//!
//! Left out: `podCIDR`, which the apiserver keeps as the first of `podCIDRs`, and all that heartbeats write.

pub mod cidr;
pub mod cidr_set;

use std::fmt::{self, Display};

use serde::{Deserialize, Deserializer, Serialize};
use shared::api::list::list;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::NODES;

use self::cidr::{Cidr, InvalidCidr};

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

/// One of `podCIDRs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PodCidr {
    Range(Cidr),
    /// A text that is none.
    Unreadable(Box<str>),
}

impl PodCidr {
    pub fn range(&self) -> Option<Cidr> {
        match self {
            Self::Range(cidr) => Some(*cidr),
            Self::Unreadable(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for PodCidr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.parse::<Cidr>() {
            Ok(cidr) => Self::Range(cidr),
            Err(InvalidCidr(text)) => Self::Unreadable(text.into()),
        })
    }
}

impl Display for PodCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(cidr) => Display::fmt(cidr, f),
            Self::Unreadable(text) => f.write_str(text),
        }
    }
}

/// `10.0.0.0/24, fd00::/64`.
pub fn joined<T: Display>(cidrs: &[T]) -> String {
    list(cidrs, T::to_string)
}
