//! What a sync of a Service does to its Endpoints, and why.
//!
//! Upstream: `syncService`, `pkg/controller/endpoint/endpoints_controller.go`.

mod reasons;
pub mod subsets;
pub mod util;

use std::collections::BTreeMap;
use std::fmt;

use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::{ResourceVersion, Uid};
use shared::api::time::Time;
use shared::controllers::endpoints::label_changes;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{ClusterIp, Endpoints, MANAGED_BY, Service, Subset, TRUNCATED, labels};
use crate::observe::{Observed, Seen};
pub use reasons::{Counts, Reason};

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Nothing(Reason),
    Create(Creation),
    Update(Update),
    /// Delete the Endpoints of a Service that is gone.
    Delete(Deletion),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Creation {
    pub labels: Labels,
    pub subsets: Vec<Subset>,
    pub is_truncated: bool,
    /// The time of the change that led to this write, if it is known.
    pub trigger: Option<Time>,
    pub why: Counts,
}

/// Changes of Endpoints, on condition that they are unchanged since the decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub uid: Uid,
    pub resource_version: ResourceVersion,
    /// The labels to change; `None` removes one.
    pub labels: BTreeMap<Text, Option<Text>>,
    /// The addresses, if they change.
    pub subsets: Option<Vec<Subset>>,
    pub is_truncated: bool,
    /// The time of the change that led to this write, if it is known.
    pub trigger: Option<Time>,
    pub why: Counts,
}

/// The deletion of Endpoints, on condition that their uid is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub uid: Uid,
}

impl Plan {
    pub const fn writes(&self) -> bool {
        match self {
            Self::Create(_) | Self::Update(_) => true,
            Self::Nothing(_) | Self::Delete(_) => false,
        }
    }
}

/// Decide on the next step. If the Service gets Endpoints, or is gone, and the cache has none, read them live.
pub fn next(observed: &Observed) -> Next {
    let matters = observed.service.as_ref().is_none_or(|service| service.selects().is_some());
    if matters && observed.endpoints == Seen::NotCached {
        return Next::Ask(LiveRead { step: "read its Endpoints", reason: Reason::NotCached });
    }
    Next::Execute(plan(observed))
}

pub fn plan(observed: &Observed) -> Plan {
    let Some(service) = &observed.service else { return plan_without(&observed.endpoints) };
    if service.is_external_name {
        return Plan::Nothing(Reason::ExternalName);
    }
    if service.selector.is_none() {
        return Plan::Nothing(Reason::NoSelector);
    }
    let mut subsets = subsets::subsets_of(service, &observed.pods);
    let left_out = subsets::truncate(&mut subsets);
    let counts = Counts::of(&observed.pods, &subsets, left_out);
    match &observed.endpoints {
        Seen::There(endpoints) => plan_update(service, endpoints, subsets, counts, observed.trigger),
        Seen::Absent | Seen::NotCached => Plan::Create(Creation {
            labels: endpoints_labels(service),
            subsets,
            is_truncated: left_out > 0,
            trigger: observed.trigger,
            why: counts,
        }),
    }
}

/// Decide for a Service that is gone. A lock of an election needs no Service.
fn plan_without(endpoints: &Seen) -> Plan {
    match endpoints {
        Seen::Absent | Seen::NotCached => Plan::Nothing(Reason::Gone),
        Seen::There(endpoints) if endpoints.metadata.annotations.is_lock => Plan::Nothing(Reason::Lock),
        Seen::There(endpoints) => Plan::Delete(Deletion { uid: endpoints.metadata.uid }),
    }
}

fn plan_update(
    service: &Service,
    endpoints: &Endpoints,
    subsets: Vec<Subset>,
    why: Counts,
    trigger: Option<Time>,
) -> Plan {
    let meta = &endpoints.metadata;
    let is_truncated = why.left_out > 0;
    // The order does not matter.
    let is_right = endpoints.subsets == subsets || util::repack(&endpoints.subsets) == subsets;
    let is_marked = meta.annotations.over_capacity.as_deref() == is_truncated.then_some(TRUNCATED);
    if is_right && is_marked && !labels_differ(&meta.labels, service) {
        return Plan::Nothing(Reason::Selected(why));
    }
    Plan::Update(Update {
        uid: meta.uid,
        resource_version: meta.resource_version,
        labels: label_changes(&meta.labels, &endpoints_labels(service)),
        subsets: (!is_right).then_some(subsets),
        is_truncated,
        trigger,
        why,
    })
}

/// The labels of a Service's Endpoints: those of the Service, and the reserved ones.
pub fn endpoints_labels(service: &Service) -> Labels {
    let headless = (service.cluster_ip == ClusterIp::Absent).then_some((labels::HEADLESS, ""));
    let own = unreserved(&service.metadata.labels);
    Labels::new(own.chain(headless).chain([(labels::MANAGED_BY, MANAGED_BY)]))
}

/// Whether Endpoints need other labels; the label `service.kubernetes.io/headless` is not compared.
///
/// Upstream: `labelsCorrectForEndpoints`, which is never satisfied if the Service has a reserved label.
pub fn labels_differ(own: &Labels, service: &Service) -> bool {
    own.get(labels::MANAGED_BY) != Some(MANAGED_BY) || !unreserved(own).eq(unreserved(&service.metadata.labels))
}

fn unreserved(own: &Labels) -> impl Iterator<Item = (&str, &str)> {
    own.iter().filter(|(key, _)| !labels::is_reserved(key))
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => reason.clone(),
            Self::Create(creation) => Reason::Selected(creation.why),
            Self::Update(update) => Reason::Selected(update.why),
            Self::Delete(_) => Reason::NoService,
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(reason) => write!(f, "nothing ({reason})"),
            Self::Create(creation) => write!(f, "create with {}", creation.why),
            Self::Update(update) => write!(f, "{update}"),
            Self::Delete(_) => write!(f, "delete ({})", Reason::NoService),
        }
    }
}

/// `update to 2 ready and 1 not ready in 1 subset (addresses, labels)`.
impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes = [(self.subsets.is_some(), "addresses"), (!self.labels.is_empty(), "labels")];
        let changes = changes.iter().filter(|(is_so, _)| *is_so).map(|(_, what)| *what);
        let changes: Vec<&str> = changes.collect();
        let what = if changes.is_empty() { "capacity".to_owned() } else { changes.join(", ") };
        write!(f, "update to {} ({what})", self.why)
    }
}
