//! Decides what one sync does about the slices that mirror the Endpoints of a Service, and why, from an observation and
//! nothing else.
//!
//! Left out: the time, which decides nothing here.
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
use shared::runtime::decisions::{self, Reasoned};

use crate::objects::{Endpoints, Reference};
use crate::observe::Observed;
pub use reasons::{Counts, Gone, NotMirrored, Reason};

/// The writes of the slices of Endpoints.
pub type Writes = slice_plan::Writes<Reference, Changes, Gone>;
/// A new slice.
pub type Creation = slice_plan::Creation<Reference>;
/// Changes of a slice.
pub type Update = slice_plan::Update<Reference, Changes>;
/// A slice to be deleted.
pub type Deletion = slice_plan::Deletion<Gone>;

/// The configuration, which does not change while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many addresses of each subset are mirrored.
    pub max_endpoints_per_subset: usize,
}

/// One sync, decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing is to be mirrored: what was, goes.
    CleanUp(CleanUp),
    /// The Endpoints are to be mirrored.
    Mirror(Mirrored),
}

/// Slices that mirror nothing any more. Each is tried, whatever becomes of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct CleanUp {
    /// Why nothing is mirrored.
    pub why: NotMirrored,
    /// The slices.
    pub delete: Vec<Deletion>,
}

/// The decision about the slices of Endpoints. The first write that fails ends them.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirrored {
    /// What is mirrored.
    pub endpoints: Arc<Endpoints>,
    /// What is written.
    pub writes: Writes,
    /// What people are told.
    pub notices: Vec<PlannedEvent>,
    /// The changes of endpoints, as metrics count them.
    pub changes: Changes,
    /// How many addresses are not mirrored.
    pub skipped: usize,
    /// How many of these are none.
    pub invalid: usize,
    /// How large each group of the same addresses' type and ports will be.
    pub sizes: Vec<Size>,
}

/// The changes of endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Were not there and are to be.
    pub added: usize,
    /// Are in another state.
    pub updated: usize,
    /// Were there and are not to be.
    pub removed: usize,
}

/// An event about the Endpoints; all are warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// Its reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

/// Decides one sync.
pub fn plan(observed: &Observed, config: Config) -> Plan {
    match meant(observed) {
        Ok(endpoints) => Plan::Mirror(reconciler::reconcile(observed, endpoints, config)),
        Err(why) => {
            let delete = reconciler::in_order(observed).map(|slice| Deletion::of(slice, Gone::NotMirrored)).collect();
            Plan::CleanUp(CleanUp { why, delete })
        }
    }
}

/// The Endpoints that are to be mirrored, or why none are.
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
    /// Whether there are any.
    pub const fn are_any(self) -> bool {
        self.added + self.updated + self.removed > 0
    }
}

impl Plan {
    /// How many slices are written.
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
