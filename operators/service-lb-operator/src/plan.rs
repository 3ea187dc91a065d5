//! What the provider is asked to do for one Service.
//!
//! Upstream: `syncService`, `processServiceCreateOrUpdate` and `nodeSyncService`.

pub mod pools;

use std::fmt;

use serde::Serialize;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::memory::{Capability, Told};
use crate::objects::Service;
use crate::observe::{Answer, Observed};

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    Nothing(Reason),
    /// Leave it, and look again after a while.
    Rest(Reason),
    /// Make its load balancer as it should be, and write its addresses.
    Ensure {
        /// Whether it lacks the finalizer, which comes first: then no load balancer outlives its Service.
        adds_finalizer: bool,
        reason: Reason,
    },
    /// Change the Nodes behind its load balancer.
    Update(Reason),
    /// Delete its load balancer, and let it go without addresses.
    CleanUp {
        /// Whether the provider says that there is one. It may be behind, so its word is no reason not to delete.
        exists: bool,
        reason: Reason,
    },
    /// Delete the load balancer of an object that is gone.
    Delete(Reason),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    NotWanted,
    UpToDate,
    /// It is not known whether the provider has load balancers.
    UnknownProvider,
    NoLoadBalancers {
        provider: String,
    },
    /// The provider was not told about it yet.
    New,
    /// The last call failed, or its answer was lost.
    Unfinished,
    Changed,
    NoFinalizer,
    /// The load balancer has other Nodes than these.
    OtherNodes {
        nodes: usize,
    },
    BeingDeleted,
    NoLongerWanted,
    /// It left the cluster without its finalizer.
    Gone,
    /// Another object has its name.
    Replaced,
    /// The cache has lost it, and the apiserver has not.
    StillThere,
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason)
            | Self::Rest(reason)
            | Self::Ensure { reason, adds_finalizer: _ }
            | Self::Update(reason)
            | Self::CleanUp { reason, exists: _ }
            | Self::Delete(reason) => reason,
        }
    }
}

/// The next stage.
pub fn next(observed: &Observed) -> Next {
    let Observed { service, told, nodes: _, capability, balancer, object } = observed;
    let aim = match (service, told) {
        (Some(service), Some(told)) if told.service.metadata.uid != service.metadata.uid => {
            Aim::Delete(Reason::Replaced)
        }
        (Some(service), told) => aim(service, told.as_ref(), observed),
        (None, Some(_)) => Aim::Delete(Reason::Gone),
        (None, None) => Aim::Nothing(Reason::NotWanted),
    };
    let plan = match (aim, capability) {
        (Aim::Nothing(reason), _) => Plan::Nothing(reason),
        (_, Capability::Unknown) => return ask("ask the provider what it can do", Reason::UnknownProvider),
        (_, Capability::Lacks(provider)) => Plan::Rest(Reason::NoLoadBalancers { provider: provider.clone() }),
        (Aim::Ensure { adds_finalizer, reason }, Capability::Has) => Plan::Ensure { adds_finalizer, reason },
        (Aim::Update(reason), Capability::Has) => Plan::Update(reason),
        (Aim::CleanUp(reason), Capability::Has) => match balancer {
            Answer::Unasked => return ask("ask the provider for the load balancer", reason),
            Answer::Exists | Answer::Absent => Plan::CleanUp { exists: *balancer == Answer::Exists, reason },
        },
        // Its successor shows that the object is gone.
        (Aim::Delete(reason @ Reason::Replaced), Capability::Has) => Plan::Delete(reason),
        (Aim::Delete(reason), Capability::Has) => match object {
            Answer::Unasked => return ask("read the Service", reason),
            Answer::Exists => Plan::Nothing(Reason::StillThere),
            Answer::Absent => Plan::Delete(reason),
        },
    };
    Next::Execute(plan)
}

/// What is to be done, as far as the caches and the memory tell.
enum Aim {
    Nothing(Reason),
    Ensure { adds_finalizer: bool, reason: Reason },
    Update(Reason),
    CleanUp(Reason),
    Delete(Reason),
}

fn aim(service: &Service, told: Option<&Told>, observed: &Observed) -> Aim {
    let is_leaving = service.metadata.is_being_deleted();
    if is_leaving || !service.wants_load_balancer() {
        let reason = if is_leaving { Reason::BeingDeleted } else { Reason::NoLongerWanted };
        let is_ours = told.is_some() || service.needs_cleanup();
        return if is_ours { Aim::CleanUp(reason) } else { Aim::Nothing(Reason::NotWanted) };
    }
    let nodes = &observed.nodes;
    let ensure = |reason| Aim::Ensure { adds_finalizer: !service.has_finalizer(), reason };
    let Some(told) = told else { return ensure(Reason::New) };
    match told.nodes {
        None => ensure(Reason::Unfinished),
        Some(_) if service.needs_update(&told.service) => ensure(Reason::Changed),
        Some(_) if !service.has_finalizer() => ensure(Reason::NoFinalizer),
        Some(digest) if digest != nodes.digest => Aim::Update(Reason::OtherNodes { nodes: nodes.all.len() }),
        Some(_) => Aim::Nothing(Reason::UpToDate),
    }
}

fn ask(step: &'static str, reason: Reason) -> Next {
    Next::Ask(LiveRead { step, reason })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(reason) => write!(f, "nothing ({reason})"),
            Self::Rest(reason) => write!(f, "wait ({reason})"),
            Self::Ensure { adds_finalizer, reason } => {
                f.write_str(if *adds_finalizer { "add the finalizer and " } else { "" })?;
                write!(f, "ensure the load balancer ({reason})")
            }
            Self::Update(reason) => write!(f, "update the load balancer's nodes ({reason})"),
            Self::CleanUp { exists, reason } => {
                let delete = if *exists { "delete the load balancer" } else { "make sure of no load balancer" };
                write!(f, "{delete} and release the Service ({reason})")
            }
            Self::Delete(reason) => write!(f, "delete the load balancer ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWanted => f.write_str("it wants no load balancer of the provider"),
            Self::UpToDate => f.write_str("its load balancer is up to date"),
            Self::UnknownProvider => f.write_str("the provider has not said whether it has load balancers"),
            Self::NoLoadBalancers { provider } => write!(f, "the cloud provider {provider} has no load balancers"),
            Self::New => f.write_str("the provider was not told about it yet"),
            Self::Unfinished => f.write_str("the last call to the provider did not succeed"),
            Self::Changed => f.write_str("it has changed"),
            Self::NoFinalizer => f.write_str("its finalizer was removed"),
            Self::OtherNodes { nodes } => write!(f, "{nodes} nodes are to be behind it"),
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::NoLongerWanted => f.write_str("it wants no load balancer any more"),
            Self::Gone => f.write_str("its Service is gone"),
            Self::Replaced => f.write_str("its Service was deleted and created again"),
            Self::StillThere => f.write_str("the apiserver still has the Service"),
        }
    }
}
