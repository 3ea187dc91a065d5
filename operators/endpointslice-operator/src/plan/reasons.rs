//! The reasons of decisions about a Service's slices.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use shared::working::decisions;

use super::{Family, Slices};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The type of the Service is `ExternalName`.
    ExternalName,
    /// The Service has no selector; another client writes its slices.
    NoSelector,
    Selected {
        pods: usize,
        /// The decision by address type.
        families: BTreeMap<String, Counts>,
        /// The number of pods that are left out because their node is unknown.
        missing_nodes: usize,
        /// The number of slices that are deleted because the Service does not have their address type.
        unsupported: usize,
    },
}

/// The slices of one address type after the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub endpoints: usize,
    pub slices: usize,
    pub added: usize,
    pub removed: usize,
    /// The number of slices that are not created because the Service is being deleted.
    pub withheld: usize,
}

/// Why a slice is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gone {
    /// A deleted Service of the same name owns it.
    NotOwned,
    Emptied,
    PortsUnwanted,
    /// The Service does not have its address type.
    Unsupported,
}

impl Reason {
    pub(super) fn of(slices: &Slices) -> Self {
        let Slices { families, unsupported, pods, hints: _, trigger: _ } = slices;
        // A pod with two addresses is skipped once for each type.
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
