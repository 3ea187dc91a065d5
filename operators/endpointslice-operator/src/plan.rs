//! What a sync of a Service does to its slices, and why.
//!
//! Upstream: `Reconcile`, `staging/src/k8s.io/endpointslice/reconciler.go`.

mod draft;
mod reasons;
pub mod reconciler;
pub mod topologycache;
pub mod trafficdist;
pub mod utils;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::time::Time;
pub use shared::controllers::endpoints::metrics::Size;
use shared::controllers::endpoints::slice_plan::{self, counted};
use shared::working::decisions::{self, Reasoned};
use shared::working::events::PlannedEvent;

use crate::memory::topology::ServiceHints;
use crate::objects::{AddressType, Endpoint, Target};
use crate::observe::Observed;
pub use reasons::{Counts, Gone, Reason};

/// The writes of the slices of one address type.
pub type Writes = slice_plan::Writes<Target, Changes, Gone>;
pub type Creation = slice_plan::Creation<Target>;
pub type Update = slice_plan::Update<Target, Changes>;
pub type Deletion = slice_plan::Deletion<Gone>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub max_endpoints_per_slice: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Ignore(Ignored),
    Write(Slices),
}

/// Why a Service gets no slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// Its type is `ExternalName`.
    ExternalName,
    /// It has no selector; another client writes its slices.
    NoSelector,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Slices {
    pub families: Vec<Family>,
    /// Slices of address types that the Service does not have.
    pub unsupported: Vec<Deletion>,
    pub pods: usize,
    pub hints: ServiceHints,
    /// The time of the change that led to the writes, if it is known.
    pub trigger: Option<Time>,
}

impl Plan {
    pub fn writes(&self) -> bool {
        match self {
            Self::Ignore(_) => false,
            Self::Write(Slices { families, unsupported, pods: _, hints: _, trigger: _ }) => {
                !unsupported.is_empty() || families.iter().any(|family| family.writes.count() > 0)
            }
        }
    }

    /// The missing nodes, whose pods are left out.
    pub fn missing_nodes(&self) -> BTreeSet<Text> {
        match self {
            Self::Ignore(_) => BTreeSet::new(),
            Self::Write(slices) => {
                let skipped = slices.families.iter().flat_map(|family| &family.skipped);
                skipped.map(|skipped| skipped.node.clone()).collect()
            }
        }
    }
}

/// The decision about the slices of one address type. A failed write ends the writes of this type only.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    pub address_type: AddressType,
    pub writes: Writes,
    /// Pods that are left out. The Service is retried, as after a failure.
    pub skipped: Vec<Skipped>,
    pub events: Vec<PlannedEvent>,
    pub added: usize,
    pub removed: usize,
    /// The size of each group of endpoints with the same ports.
    pub sizes: Vec<Size>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub gone: usize,
    pub new: usize,
    pub changed: usize,
}

/// A pod that is left out because its node is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub pod: Key,
    pub node: Text,
}

pub fn plan(observed: &Observed, config: Config) -> Plan {
    let service = &*observed.service;
    if service.is_external_name {
        return Plan::Ignore(Ignored::ExternalName);
    }
    if service.selector.is_none() {
        return Plan::Ignore(Ignored::NoSelector);
    }
    let mut hints = observed.hints.clone();
    let types = utils::address_types(service);
    let unsupported = reconciler::in_order(observed, |slice| !types.contains(&slice.address_type));
    for slice in &unsupported {
        hints.remove(&slice.address_type);
    }
    let families =
        types.iter().map(|address_type| reconciler::plan_address_type(observed, config, address_type, &mut hints));
    let families = families.collect();
    let unsupported = unsupported.into_iter().map(|slice| Deletion::of(slice, Gone::Unsupported)).collect();
    let pods = observed.pods.iter().filter(|pod| pod.is_listed()).count();
    Plan::Write(Slices { families, unsupported, pods, hints, trigger: observed.trigger })
}

impl Family {
    pub(crate) fn new(address_type: AddressType, skipped: Vec<Skipped>) -> Self {
        Self {
            address_type,
            writes: Writes::default(),
            skipped,
            events: Vec::new(),
            added: 0,
            removed: 0,
            sizes: Vec::new(),
        }
    }
}

impl Changes {
    fn between(old: &[Endpoint], new: &[Endpoint]) -> Self {
        let key = |endpoint: &Endpoint| endpoint.target.as_ref().map(|target| target.key.clone());
        let mut before: BTreeMap<Option<Key>, &Endpoint> =
            old.iter().map(|endpoint| (key(endpoint), endpoint)).collect();
        let mut changes = Self::default();
        for endpoint in new {
            match before.remove(&key(endpoint)) {
                None => changes.new += 1,
                Some(same) if same == endpoint => {}
                Some(_) => changes.changed += 1,
            }
        }
        Self { gone: before.len(), ..changes }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignore(_) => write!(f, "nothing ({})", self.why()),
            Self::Write(Slices { families, unsupported, pods, hints: _, trigger: _ }) => {
                for (at, family) in families.iter().enumerate() {
                    let separator = if at == 0 { "" } else { "; " };
                    write!(f, "{separator}{family}")?;
                }
                unsupported.iter().try_for_each(|deletion| write!(f, "; {deletion}"))?;
                if *pods == 0 { write!(f, "; {}", self.why()) } else { Ok(()) }
            }
        }
    }
}

impl Plan {
    fn why(&self) -> Reason {
        match self {
            Self::Ignore(Ignored::ExternalName) => Reason::ExternalName,
            Self::Ignore(Ignored::NoSelector) => Reason::NoSelector,
            Self::Write(slices) => Reason::of(slices),
        }
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        self.why()
    }
}

/// `IPv4: create 100, update web-x of 89 (27 new), delete web-y (emptied)`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let creation = |creation: &Creation| format!("create {}", creation.endpoints.len());
        let mut steps = self.writes.steps(creation, "the service is");
        if steps.is_empty() {
            let endpoints: usize = self.sizes.iter().map(|size| size.endpoints).sum();
            let slices: usize = self.sizes.iter().map(|size| size.slices).sum();
            steps.push(format!("nothing ({endpoints} in {slices})"));
        }
        steps.extend(self.skipped.iter().map(ToString::to_string));
        steps.extend(self.events.iter().map(|event| format!("record {}", event.reason)));
        write!(f, "{}: {}", self.address_type, steps.join(", "))
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gone, new, changed } = *self;
        f.write_str(&counted(&[(gone, "gone"), (new, "new"), (changed, "changed")]))
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skip {} (no node {:?})", self.pod.name(), self.node)
    }
}
