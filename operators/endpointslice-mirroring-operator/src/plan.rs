//! What a sync does to the slices that mirror the Endpoints of a Service, and why.
//!
//! Upstream: `syncEndpoints`, `pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go`.

mod reasons;
pub mod reconciler;
pub mod reconciler_helpers;
mod text;
pub mod utils;

use std::sync::Arc;

pub use shared::controllers::endpoints::metrics::Size;
use shared::controllers::endpoints::slice_plan;
use shared::working::decisions::{self, Reasoned};
use shared::working::events::PlannedEvent;

use crate::objects::{Endpoints, Reference};
use crate::observe::Observed;
pub use reasons::{Counts, Gone, NotMirrored, Reason};

pub type Writes = slice_plan::Writes<Reference, Changes, Gone>;
pub type Creation = slice_plan::Creation<Reference>;
pub type Update = slice_plan::Update<Reference, Changes>;
pub type Deletion = slice_plan::Deletion<Gone>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub max_endpoints_per_subset: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    CleanUp(CleanUp),
    Mirror(Mirrored),
}

/// The deletion of slices that mirror nothing any more. All are tried, even if one fails.
#[derive(Clone, Debug, PartialEq)]
pub struct CleanUp {
    /// Why nothing is mirrored.
    pub why: NotMirrored,
    pub delete: Vec<Deletion>,
}

/// The decision about the slices of mirrored Endpoints. The first write that fails ends the sync.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirrored {
    pub endpoints: Arc<Endpoints>,
    pub writes: Writes,
    pub events: Vec<PlannedEvent>,
    pub changes: Changes,
    /// The number of addresses that are not mirrored.
    pub skipped: usize,
    /// The number of these that are not IPs.
    pub invalid: usize,
    /// The size of each group of endpoints with the same address type and ports.
    pub sizes: Vec<Size>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub added: usize,
    pub updated: usize,
    pub removed: usize,
}

pub fn plan(observed: &Observed, config: Config) -> Plan {
    match meant(observed) {
        Ok(endpoints) => Plan::Mirror(reconciler::reconcile(observed, endpoints, config)),
        Err(why) => {
            let delete = reconciler::in_order(observed).map(|slice| Deletion::of(slice, Gone::NotMirrored)).collect();
            Plan::CleanUp(CleanUp { why, delete })
        }
    }
}

/// The Endpoints to mirror, or why none are mirrored.
fn meant(observed: &Observed) -> Result<&Arc<Endpoints>, NotMirrored> {
    let Some(service) = &observed.service else { return Err(NotMirrored::NoService) };
    if service.has_selector {
        return Err(NotMirrored::HasSelector);
    }
    let endpoints = observed.endpoints.as_ref().ok_or(NotMirrored::NoEndpoints)?;
    if endpoints.is_to_be_skipped() {
        return Err(NotMirrored::Skipped);
    }
    if endpoints.is_lock() { Err(NotMirrored::Lock) } else { Ok(endpoints) }
}

impl Changes {
    pub const fn are_any(self) -> bool {
        self.added + self.updated + self.removed > 0
    }
}

impl Plan {
    pub fn writes(&self) -> usize {
        match self {
            Self::CleanUp(clean_up) => clean_up.delete.len(),
            Self::Mirror(mirrored) => mirrored.writes.count(),
        }
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::CleanUp(clean_up) => Reason::NotMirrored(clean_up.why),
            Self::Mirror(mirrored) => Reason::Mirrored(Counts::of(mirrored)),
        }
    }
}
