//! Why a Service's slices are what they are: as a value for programs, and in words.
//!
//! Left out: each single write, which the plan's text has.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use shared::runtime::decisions;

use super::{Family, Slices};

/// Why slices are written, or none is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The Service is but another name.
    ExternalName,
    /// Somebody else writes its slices.
    NoSelector,
    /// The endpoints of the pods that it selects are to be in its slices.
    Selected {
        /// How many pods with an IP that is.
        pods: usize,
        /// The decision by address type.
        families: BTreeMap<String, Counts>,
        /// How many pods are left out because the node that they name is not known.
        missing_nodes: usize,
        /// How many slices go because the Service has no addresses of their type.
        unsupported: usize,
    },
}

/// The slices of one address type, once all is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// How many endpoints there will be.
    pub endpoints: usize,
    /// In how many slices.
    pub slices: usize,
    /// How many endpoints are new.
    pub added: usize,
    /// How many endpoints are gone.
    pub removed: usize,
    /// How many slices are not created because the Service is being deleted.
    pub withheld: usize,
}

/// Why a slice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gone {
    /// Another Service owns it, one that had the same name before.
    NotOwned,
    /// None of its endpoints is there any more.
    Emptied,
    /// No pod serves on its ports any more.
    PortsUnwanted,
    /// The Service has no such addresses.
    Unsupported,
}

impl Reason {
    pub(super) fn of(slices: &Slices) -> Self {
        let Slices { families, unsupported, pods, hints: _, trigger: _ } = slices;
        // Of a pod with two addresses each type leaves one out.
        let missing_nodes = families.iter().map(|family| family.skipped.len()).max().unwrap_or(0);
        Self::Selected {
            pods: *pods,
            families: families.iter().map(|family| (family.address_type.to_string(), Counts::of(family))).collect(),
            missing_nodes,
            unsupported: unsupported.len(),
        }
    }
}

impl Counts {
    fn of(family: &Family) -> Self {
        Self {
            endpoints: family.sizes.iter().map(|size| size.endpoints).sum(),
            slices: family.sizes.iter().map(|size| size.slices).sum(),
            added: family.added,
            removed: family.removed,
            withheld: family.writes.withheld,
        }
    }
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Gone {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExternalName => f.write_str("is an external name"),
            Self::NoSelector => f.write_str("has no selector"),
            Self::Selected { pods: 0, .. } => f.write_str("it selects no pod that has an IP"),
            Self::Selected { pods, .. } => write!(f, "it selects {pods} pods that have an IP"),
        }
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOwned => "another service's",
            Self::Emptied => "emptied",
            Self::PortsUnwanted => "ports unwanted",
            Self::Unsupported => "address type unwanted",
        })
    }
}
