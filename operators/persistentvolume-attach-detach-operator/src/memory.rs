//! The state of attaching and detaching that no object has, by volume and node: since when something is waited for, what
//! was reported already, and what deleted nodes did not use.
//!
//! Times are monotonic, so no step of the wall clock forces a detach. Another process starts them again, as upstream.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::following::informer::{Need, Needed};

use crate::objects::VolumeError;
use crate::objects::volume::VolumeName;

/// The memory of a volume on a node.
///
/// Upstream: `nodeAttachedTo`, `pkg/controller/volume/attachdetach/cache/actual_state_of_world.go`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// For how long no pod of the node has needed the volume; none while one does.
    pub unneeded: Option<Duration>,
    /// For how long the driver's attacher has not answered.
    pub unanswered: Option<Duration>,
    pub report: Report,
    /// Whether a VolumeAttachment was requested that the cache has not shown.
    pub is_requested: bool,
    /// The VolumeAttachment whose deletion was requested.
    pub deleted: Option<Uid>,
    /// Whether the node may attach it by itself, and its status has to say so.
    pub is_granted: bool,
    /// Whether an event has said that another node has it.
    pub is_refused: bool,
    /// The last failure of which an event was posted.
    pub told: Option<VolumeError>,
    /// The VolumeAttachment of whose success an event was posted.
    pub announced: Option<Uid>,
}

/// Whether the status of the node may name the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Report {
    #[default]
    Free,
    /// It must not, because the volume is about to be detached.
    Withdrawn,
    /// It does not, and no write is under way that would add the volume.
    Acknowledged,
}

/// The memory; empty at first.
#[derive(Default)]
pub struct Memory(Mutex<State>);

#[derive(Default)]
struct State {
    volumes: BTreeMap<VolumeName, BTreeMap<Text, Entry>>,
    of_nodes: BTreeMap<Text, BTreeSet<VolumeName>>,
    /// The VolumeAttachments whose node is gone, and did not use the volume in its last state.
    left_unused: BTreeSet<Uid>,
    /// The nodes with volumes that only a pod's own spec can explain: all pods are followed for their sake.
    with_inline: BTreeMap<Text, Needed>,
}

/// What is remembered, with durations up to an instant.
struct Entry {
    remembered: Remembered,
    at: Instant,
}

impl Entry {
    fn at(&self, now: Instant) -> Remembered {
        let passed = now.saturating_duration_since(self.at);
        let Remembered { unneeded, unanswered, .. } = self.remembered;
        let run_on = |duration: Option<Duration>| duration.map(|duration| duration.saturating_add(passed));
        Remembered { unneeded: run_on(unneeded), unanswered: run_on(unanswered), ..self.remembered.clone() }
    }
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, volume: &VolumeName, node: &Text, now: Instant) -> Remembered {
        let state = self.state();
        let entry = state.volumes.get(volume).and_then(|nodes| nodes.get(node));
        entry.map(|entry| entry.at(now)).unwrap_or_default()
    }

    /// The nodes on which something of this volume is remembered.
    pub fn nodes_of(&self, volume: &VolumeName) -> Vec<Text> {
        self.state().volumes.get(volume).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// The volumes of which something is remembered on this node.
    pub fn volumes_on(&self, node: &Text) -> Vec<VolumeName> {
        self.state().of_nodes.get(node).into_iter().flatten().cloned().collect()
    }

    /// Remembers this, with durations up to `now`. The default is forgotten. An acknowledgement that came after the
    /// decision stays.
    pub fn remember(&self, volume: &VolumeName, node: &Text, mut remembered: Remembered, now: Instant) {
        let mut state = self.state();
        let known = state.volumes.get(volume).and_then(|nodes| nodes.get(node)).map(|known| known.remembered.report);
        if (known, remembered.report) == (Some(Report::Acknowledged), Report::Withdrawn) {
            remembered.report = Report::Acknowledged;
        }
        if remembered == Remembered::default() {
            state.forget(volume, node);
            return;
        }
        let entry = Entry { remembered, at: now };
        state.volumes.entry(volume.clone()).or_default().insert(node.clone(), entry);
        state.of_nodes.entry(node.clone()).or_default().insert(volume.clone());
    }

    /// Notes that the status of the node does not name the volume; gives whether that was waited for.
    pub fn acknowledge(&self, volume: &VolumeName, node: &Text) -> bool {
        let mut state = self.state();
        let entry = state.volumes.get_mut(volume).and_then(|nodes| nodes.get_mut(node));
        let withdrawn = entry.filter(|entry| entry.remembered.report == Report::Withdrawn);
        withdrawn.map(|entry| entry.remembered.report = Report::Acknowledged).is_some()
    }

    /// Notes that the request of a VolumeAttachment stored nothing.
    pub fn request_failed(&self, volume: &VolumeName, node: &Text) {
        let mut state = self.state();
        if let Some(entry) = state.volumes.get_mut(volume).and_then(|nodes| nodes.get_mut(node)) {
            entry.remembered.is_requested = false;
        }
    }

    /// Remembers whether a node has volumes that only a pod's own spec can explain.
    pub(crate) fn note_inline(&self, node: &Text, has_inline: bool, need: &Need) {
        let mut state = self.state();
        if !has_inline {
            drop(state.with_inline.remove(node));
        } else if !state.with_inline.contains_key(node) {
            state.with_inline.insert(node.clone(), need.hold(""));
        }
    }

    /// Remembers whether the node of a VolumeAttachment is gone, and did not use the volume in its last state.
    pub(crate) fn note_left(&self, attachment: Uid, is_unused: bool) {
        let mut state = self.state();
        if is_unused {
            state.left_unused.insert(attachment);
        } else {
            state.left_unused.remove(&attachment);
        }
    }

    pub(crate) fn is_left_unused(&self, attachment: Uid) -> bool {
        self.state().left_unused.contains(&attachment)
    }

    /// Forgets everything that is known from a history that a restore of etcd has undone.
    pub fn forget_all(&self) {
        let mut state = self.state();
        state.volumes.clear();
        state.of_nodes.clear();
        state.left_unused.clear();
    }
}

impl State {
    fn forget(&mut self, volume: &VolumeName, node: &Text) {
        if let Some(nodes) = self.volumes.get_mut(volume) {
            nodes.remove(node);
            if nodes.is_empty() {
                self.volumes.remove(volume);
            }
        }
        if let Some(volumes) = self.of_nodes.get_mut(node) {
            volumes.remove(volume);
            if volumes.is_empty() {
                self.of_nodes.remove(node);
            }
        }
    }
}
