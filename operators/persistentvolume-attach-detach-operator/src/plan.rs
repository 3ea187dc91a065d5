//! What happens to a volume on each of its nodes, and which volumes a node reports.
//!
//! A detach has four steps, each of which may take a while: the node unmounts the volume, its status stops naming it, a
//! live read shows that it is still unmounted, and its VolumeAttachment is deleted. An attach has three: no other node has
//! the volume, the driver's attacher answers, and the status of the node names it.
//!
//! Upstream: `reconcile`, `pkg/controller/volume/attachdetach/reconciler/reconciler.go`.

mod attach;
mod detach;
pub(crate) mod messages;
mod reasons;
mod report;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::{Key, ObjectReference, Uid};
use shared::working::decisions::{self, LiveRead, Reasoned};
use shared::working::events::PlannedEvent;

use crate::memory::{Remembered, Report};
use crate::objects::volume::{Plugin, Spec, VolumeName};
use crate::observe::{Observed, Place};
pub use reasons::{Forced, PlaceReason, Reason};
pub use report::{NodePlan, NodeReason, Reported, plan_node};

/// How long a node that is not ready may keep a volume that no pod needs.
///
/// Upstream: `ReconcilerMaxWaitForUnmountDuration`, `pkg/controller/volume/attachdetach/attach_detach_controller.go`.
pub const MAX_WAIT_FOR_UNMOUNT: Duration = Duration::from_mins(6);

/// How long a driver's attacher may take before an event says that it has not answered.
///
/// Upstream: `csiTimeout`, `pkg/volume/csi/csi_plugin.go`.
pub const ATTACHER_TIMEOUT: Duration = Duration::from_mins(2);

/// What flags decide.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Whether a volume is detached from a node that keeps it for too long.
    pub forces_on_timeout: bool,
    /// Whether a volume that a node reports without a VolumeAttachment is attached again.
    pub verifies: bool,
}

pub type Next = decisions::Next<Reason, Plan>;

/// A step for each node that has the volume or needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub volume: VolumeName,
    pub steps: Vec<Step>,
}

/// What happens to the volume on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub node: Text,
    pub act: Act,
    /// What is remembered from now on.
    pub remember: Remembered,
    /// Whether the node is to be synced, because it may have to report the volume or not any more.
    pub syncs_node: bool,
    pub events: Vec<PlannedEvent>,
    /// After which time the volume is looked at again.
    pub left: Option<Duration>,
    pub reason: PlaceReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    /// Withdraw the volume from what the node reports.
    Withdraw,
    /// Create the VolumeAttachment.
    Attach {
        attachment: Key,
        driver: Text,
        spec: Arc<Spec>,
        pods: Vec<ObjectReference>,
    },
    /// Let the node attach the volume by itself.
    Grant,
    /// Delete the VolumeAttachment.
    Detach {
        attachment: Key,
        uid: Uid,
        forced: Option<Forced>,
    },
}

/// The state of a volume on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Detached,
    /// The node reports it, and there is no VolumeAttachment.
    Reported,
    /// The driver's attacher has not answered, or has failed.
    Attaching,
    Attached,
    /// The deletion of its VolumeAttachment was requested, or the node has to stop reporting it.
    Detaching,
}

impl Place {
    /// Upstream: `GetAttachState`, `pkg/controller/volume/attachdetach/cache/actual_state_of_world.go`.
    fn attach_state(&self, volume: &VolumeName) -> State {
        let Remembered { report, is_granted, .. } = &self.remembered;
        let is_reported = self.state.as_ref().is_some_and(|node| node.reports(volume));
        if let Plugin::OfNode(_) = volume.plugin() {
            return match (is_reported || *is_granted, report) {
                (false, _) => State::Detached,
                (true, Report::Free) => State::Attached,
                (true, Report::Withdrawn | Report::Acknowledged) => State::Detaching,
            };
        }
        match &self.attachment {
            Some(attachment) if attachment.metadata.is_being_deleted() => State::Detaching,
            Some(_) if self.is_deleted() => State::Detaching,
            Some(attachment) if attachment.is_attached => State::Attached,
            Some(_) => State::Attaching,
            None if !is_reported => State::Detached,
            None if *report == Report::Acknowledged => State::Detaching,
            None => State::Reported,
        }
    }
}

/// On how many nodes a volume is wanted, and on how many it is or may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub desired: usize,
    pub actual: usize,
}

impl Totals {
    pub fn of(observed: &Observed) -> Self {
        let Observed { volume, places, at: _ } = observed;
        Self {
            desired: places.iter().filter(|place| place.wanting().next().is_some()).count(),
            actual: places.iter().filter(|place| place.attach_state(volume) != State::Detached).count(),
        }
    }
}

/// Whether pods of this node wait for the volume.
pub fn is_awaited(observed: &Observed, node: &str) -> bool {
    let mut places = observed.places.iter().filter(|place| *place.node == *node);
    places.any(|place| place.wanting().next().is_some() && place.attach_state(&observed.volume) != State::Attached)
}

/// Plans the next stage: live reads of VolumeAttachments whose creation is in doubt, live reads of the nodes that gave the
/// volume back, or a step for each node.
pub fn plan(observed: &Observed, config: Config) -> Next {
    let Observed { volume, places, at: _ } = observed;
    let unseen = places.iter().filter(|place| place.is_unseen());
    let nodes: Vec<Text> = unseen.map(|place| place.node.clone()).collect();
    if !nodes.is_empty() {
        return Next::Ask(LiveRead { step: "read the VolumeAttachments", reason: Reason::Unseen { nodes } });
    }
    let leaving: Vec<Option<Step>> = places.iter().map(|place| detach::plan(place, volume, config)).collect();
    let unverified = places.iter().zip(&leaving).filter(|(place, step)| detach::needs_live_read(place, step.as_ref()));
    let nodes: Vec<Text> = unverified.map(|(place, _)| place.node.clone()).collect();
    if !nodes.is_empty() {
        return Next::Ask(LiveRead { step: "read the nodes", reason: Reason::Unverified { nodes } });
    }
    let others = attach::Others { observed, leaving: &leaving };
    let step = |(place, leaving): (&Place, &Option<Step>)| {
        leaving.clone().unwrap_or_else(|| attach::plan(place, &others, config))
    };
    let steps = places.iter().zip(&leaving).map(step);
    Next::Execute(Plan { volume: volume.clone(), steps: steps.collect() })
}

impl Step {
    /// A step that changes nothing for a while.
    fn wait(place: &Place, remember: Remembered, reason: PlaceReason) -> Self {
        Self {
            node: place.node.clone(),
            act: Act::Nothing,
            remember,
            syncs_node: false,
            events: Vec::new(),
            left: None,
            reason,
        }
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        let reasons = self.steps.iter().map(|step| (step.node.clone(), step.reason.clone()));
        if self.steps.is_empty() { Reason::Unused } else { Reason::Nodes(reasons.collect()) }
    }
}

impl Reasoned for NodePlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return write!(f, "nothing ({})", Reason::Unused);
        }
        f.write_str(&list(&self.steps, |step| format!("{}: {} ({})", step.node, step.act, step.reason)))
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::Withdraw => "withdraw",
            Self::Attach { .. } => "attach",
            Self::Grant => "let the node attach",
            Self::Detach { forced: None, .. } => "detach",
            Self::Detach { forced: Some(_), .. } => "detach by force",
        })
    }
}
