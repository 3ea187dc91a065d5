//! Why a Service's Endpoints are what they are: as a value for programs, and in words.
//!
//! Left out: each single address.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use shared::runtime::decisions;

use super::subsets::count;
use crate::objects::{Pod, Subset};

/// Why Endpoints are written, or none are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// The Service is but another name.
    ExternalName,
    /// Somebody else writes its Endpoints.
    NoSelector,
    /// The cache has only those with this controller's label.
    NotCached,
    /// The pods that the Service selects are to be in its Endpoints.
    Selected(Counts),
    /// There are Endpoints without a Service.
    NoService,
    /// They are the lock of an election.
    Lock,
    /// There is neither a Service nor Endpoints.
    Gone,
}

/// The addresses, once all is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// How many pods with an IP the Service selects.
    pub pods: usize,
    /// How many addresses are ready.
    pub ready: usize,
    /// How many are not.
    pub not_ready: usize,
    /// In how many subsets.
    pub subsets: usize,
    /// How many addresses are left out because there are too many.
    pub left_out: usize,
}

impl Counts {
    pub(super) fn of(pods: &[Arc<Pod>], subsets: &[Subset], left_out: usize) -> Self {
        let (ready, not_ready) = count(subsets);
        let pods = pods.iter().filter(|pod| pod.is_listed()).count();
        Self { pods, ready, not_ready, subsets: subsets.len(), left_out }
    }
}

impl decisions::Reason for Reason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExternalName => f.write_str("is an external name"),
            Self::NoSelector => f.write_str("has no selector"),
            Self::NotCached => f.write_str("none have the label"),
            Self::Selected(counts) => write!(f, "{counts}"),
            Self::NoService => f.write_str("there is no such service"),
            Self::Lock => f.write_str("the lock of an election"),
            Self::Gone => f.write_str("neither is there"),
        }
    }
}

/// `2 ready and 1 not ready in 1 subset`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pods: _, ready, not_ready, subsets, left_out } = self;
        let plural = if *subsets == 1 { "" } else { "s" };
        write!(f, "{ready} ready and {not_ready} not ready in {subsets} subset{plural}")?;
        if *left_out > 0 { write!(f, ", {left_out} left out") } else { Ok(()) }
    }
}
