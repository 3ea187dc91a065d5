//! Which volumes the status of a node names: its kubelet mounts no others.
//!
//! Upstream: `GetVolumesToReportAttachedForNode`, `pkg/controller/volume/attachdetach/cache/actual_state_of_world.go`, and
//! `UpdateNodeStatusForNode`, `pkg/controller/volume/attachdetach/statusupdater/node_status_updater.go`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::Uid;
use shared::working::decisions;

use super::{Config, State};
use crate::memory::Report;
use crate::objects::node::AttachedVolume;
use crate::objects::volume::{Plugin, VolumeName};
use crate::observe::{ObservedNode, Place};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    pub node: Text,
    /// The list that the status gets; none if it has it.
    pub write: Option<Reported>,
    /// The volumes that may be detached once the list is written.
    pub acknowledge: Vec<VolumeName>,
    pub reason: NodeReason,
}

/// A whole `status.volumesAttached`, for the node of this uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub uid: Uid,
    pub volumes: Vec<AttachedVolume>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeReason {
    Gone,
    /// It reports what it has.
    Reported {
        volumes: usize,
    },
    Changed {
        added: Vec<VolumeName>,
        removed: Vec<VolumeName>,
    },
}

impl decisions::Reason for NodeReason {}

/// Plans what a node reports. Entries keep their order, and those of other plugins stay as they are.
pub fn plan_node(observed: &ObservedNode, config: Config) -> NodePlan {
    let ObservedNode { name, node, places } = observed;
    let withdrawn = places.iter().filter(|(_, place)| place.remembered.report == Report::Withdrawn);
    let acknowledge = withdrawn.map(|(volume, _)| volume.clone()).collect();
    let Some(node) = node else {
        return NodePlan { node: name.clone(), write: None, acknowledge, reason: NodeReason::Gone };
    };
    let stays = |volume: &VolumeName| places.get(volume).is_none_or(|place| stays_reported(volume, place, config));
    let (mut volumes, removed): (Vec<AttachedVolume>, Vec<AttachedVolume>) =
        node.attached.iter().cloned().partition(|attached| stays(&attached.name));
    let added = new_volumes(places, |volume| node.reports(volume));
    volumes.extend(added.iter().map(|name| AttachedVolume { name: name.clone(), device_path: Text::default() }));
    let (node, uid) = (name.clone(), node.metadata.uid);
    if added.is_empty() && removed.is_empty() {
        return NodePlan { node, write: None, acknowledge, reason: NodeReason::Reported { volumes: volumes.len() } };
    }
    let removed = removed.into_iter().map(|attached| attached.name).collect();
    let write = Some(Reported { uid, volumes });
    NodePlan { node, write, acknowledge, reason: NodeReason::Changed { added, removed } }
}

/// Whether a volume that the node reports is still reported. Where no pod needs it, only its detach ends that.
fn stays_reported(volume: &VolumeName, place: &Place, config: Config) -> bool {
    if volume.plugin() == Plugin::Other {
        return true;
    }
    if place.remembered.report != Report::Free {
        return false;
    }
    let is_wanted = place.wanting().next().is_some();
    match place.attach_state(volume) {
        State::Attached => true,
        State::Detached | State::Reported | State::Attaching => !is_wanted || !config.verifies,
        State::Detaching => !is_wanted,
    }
}

/// The volumes that pods want, and that are attached or may be attached by the node.
fn new_volumes(places: &BTreeMap<VolumeName, Place>, is_reported: impl Fn(&VolumeName) -> bool) -> Vec<VolumeName> {
    let is_new = |volume: &VolumeName, place: &Place| {
        let is_wanted = place.wanting().next().is_some();
        let is_attached = place.attach_state(volume) == State::Attached;
        !is_reported(volume) && is_wanted && is_attached && place.remembered.report == Report::Free
    };
    places.iter().filter(|(volume, place)| is_new(volume, place)).map(|(volume, _)| volume.clone()).collect()
}

impl fmt::Display for NodePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let act = if self.write.is_some() { "write the list" } else { "nothing" };
        write!(f, "{act} ({})", self.reason)
    }
}

impl fmt::Display for NodeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the node is gone"),
            Self::Reported { volumes } => write!(f, "reports the volumes that it has: {volumes}"),
            Self::Changed { added, removed } => {
                let listed = |volumes: &Vec<VolumeName>| list(volumes, VolumeName::to_string);
                match (added.is_empty(), removed.is_empty()) {
                    (false, true) => write!(f, "attached: {}", listed(added)),
                    (true, _) => write!(f, "not attached any more: {}", listed(removed)),
                    (false, false) => {
                        write!(f, "attached: {}, not attached any more: {}", listed(added), listed(removed))
                    }
                }
            }
        }
    }
}
