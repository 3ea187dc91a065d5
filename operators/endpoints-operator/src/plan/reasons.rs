//! The reasons of decisions about a Service's Endpoints.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use shared::working::decisions;

use super::subsets::count;
use crate::objects::{Pod, Subset};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// The type of the Service is `ExternalName`.
    ExternalName,
    /// The Service has no selector; another client writes its Endpoints.
    NoSelector,
    /// The cache has no Endpoints, and holds only those with this controller's label.
    NotCached,
    Selected(Counts),
    NoService,
    Lock,
    /// Neither the Service nor its Endpoints exist.
    Gone,
}

/// The addresses after the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub pods: usize,
    pub ready: usize,
    pub not_ready: usize,
    pub subsets: usize,
    /// The number of addresses above the limit, which are left out.
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
            Self::NotCached => f.write_str("the cache has none"),
            Self::Selected(counts) => write!(f, "{counts}"),
            Self::NoService => f.write_str("the service does not exist"),
            Self::Lock => f.write_str("the lock of an election"),
            Self::Gone => f.write_str("neither the service nor its endpoints exist"),
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
