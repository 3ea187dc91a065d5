//! Which volumes and nodes are synced when an object changes.
//!
//! Heartbeats of nodes and status changes of pods are frequent, so only what a plan reads counts.

use std::collections::BTreeSet;

use shared::api::intern::Text;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::node::Node;
use crate::objects::pod::Pod;
use crate::objects::volume::{PersistentVolume, Plugin, VolumeName};
use crate::objects::{CsiDriver, PersistentVolumeClaim, VolumeAttachment};
use crate::observe::Caches;

/// A change of a volume's claim or source.
pub fn persistent_volume_changed(change: Change<'_, PersistentVolume>) -> Vec<Effect> {
    let specs = match change {
        Change::Updated { old, new } if old.claim == new.claim && old.spec == new.spec => return Vec::new(),
        Change::Updated { old, new } => vec![old, new],
        Change::Added(volume) | Change::Deleted(volume) => vec![volume],
    };
    enqueue(specs.iter().filter_map(|volume| volume.spec.as_ref()).map(|spec| spec.volume.clone()))
}

/// A node whose reported volumes somebody else changed, or that was created again under its name.
///
/// Upstream: `nodeAdd`, `pkg/controller/volume/attachdetach/attach_detach_controller.go`.
pub fn report_changed(change: Change<'_, Node>) -> Vec<Effect> {
    match change {
        Change::Updated { old, new } if old.attached == new.attached && old.metadata.uid == new.metadata.uid => {
            Vec::new()
        }
        Change::Added(_) | Change::Updated { .. } | Change::Deleted(_) => {
            vec![Effect::Enqueue(change.latest().metadata.key.clone(), Cause::Event)]
        }
    }
}

impl Caches {
    /// Upstream: `syncPVCByKey`, `pkg/controller/volume/attachdetach/attach_detach_controller.go`.
    pub fn claim_changed(&self, change: Change<'_, PersistentVolumeClaim>) -> Vec<Effect> {
        if let Change::Updated { old, new } = change
            && old.volume == new.volume
            && old.metadata.uid == new.metadata.uid
        {
            return Vec::new();
        }
        enqueue(self.volumes_of_claim(&change.latest().metadata.key))
    }

    /// Upstream: `podUpdate`.
    pub fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let pods = match change {
            Change::Updated { old, new } => {
                let is_same =
                    (old.metadata.uid, &old.claims, &old.inline) == (new.metadata.uid, &new.claims, &new.inline);
                if is_same && old.node == new.node && old.is_active() == new.is_active() {
                    return Vec::new();
                }
                vec![old, new]
            }
            Change::Added(pod) | Change::Deleted(pod) => vec![pod],
        };
        enqueue(pods.into_iter().flat_map(|pod| self.volumes_of_pod(pod)))
    }

    /// Upstream: `nodeUpdate` and `nodeDelete`.
    pub fn node_changed(&self, change: Change<'_, Node>) -> Vec<Effect> {
        let node = Text::new(change.latest().metadata.name());
        match change {
            Change::Updated { old, new } if is_as_well_as(old, new) => enqueue(differing(old, new)),
            Change::Added(new) | Change::Deleted(new) => enqueue(self.volumes_at(&node, &[&**new])),
            Change::Updated { old, new } => enqueue(self.volumes_at(&node, &[&**old, &**new])),
        }
    }

    /// The volumes that a node has, reports or needs.
    fn volumes_at(&self, node: &Text, states: &[&Node]) -> BTreeSet<VolumeName> {
        let reported = states.iter().flat_map(|node| node.attached.iter().map(|attached| attached.name.clone()));
        let mut volumes: BTreeSet<VolumeName> = reported.collect();
        volumes.extend(self.memory.volumes_on(node));
        volumes.extend(self.volumes_attached_to(node));
        volumes.extend(self.volumes_of_pods_on(node));
        volumes
    }

    /// Upstream: `findAndRemoveDeletedPods`, `pkg/controller/volume/attachdetach/populator`, which looks each minute.
    pub fn driver_changed(&self, change: Change<'_, CsiDriver>) -> Vec<Effect> {
        if let Change::Updated { old, new } = change
            && old.requires_attach == new.requires_attach
        {
            return Vec::new();
        }
        let of = change.latest().metadata.name();
        let is_of_it =
            |volume: &VolumeName| matches!(volume.plugin(), Plugin::Csi { driver, handle: _ } if driver == of);
        let volumes =
            self.persistent_volumes.all().into_iter().filter_map(|volume| Some(volume.spec.as_ref()?.volume.clone()));
        enqueue(volumes.filter(is_of_it))
    }

    /// A write of the attacher, or a VolumeAttachment that somebody else made or deleted.
    pub fn attachment_changed(&self, change: Change<'_, VolumeAttachment>) -> Vec<Effect> {
        if let Change::Updated { old, new } = change
            && is_same_attachment(old, new)
        {
            return Vec::new();
        }
        enqueue(self.volume_of(change.latest()))
    }
}

/// Whether nothing about the node itself has changed.
fn is_as_well_as(old: &Node, new: &Node) -> bool {
    let key = |node: &Node| (node.metadata.uid, node.is_ready, node.is_out_of_service, node.is_managed());
    key(old) == key(new)
}

/// The volumes that only one of these states reports or uses.
fn differing(old: &Node, new: &Node) -> Vec<VolumeName> {
    let names = |node: &Node| -> (BTreeSet<VolumeName>, BTreeSet<VolumeName>) {
        let reported = node.attached.iter().map(|attached| attached.name.clone()).collect();
        (reported, node.in_use.iter().cloned().collect())
    };
    if old.attached == new.attached && old.in_use == new.in_use {
        return Vec::new();
    }
    let ((old_reported, old_used), (new_reported, new_used)) = (names(old), names(new));
    let reported = old_reported.symmetric_difference(&new_reported);
    reported.chain(old_used.symmetric_difference(&new_used)).cloned().collect()
}

fn is_same_attachment(old: &VolumeAttachment, new: &VolumeAttachment) -> bool {
    let VolumeAttachment { metadata, node: _, source: _, is_attached, attach_error, detach_error } = new;
    let is_same_object = (old.metadata.uid, old.metadata.deletion) == (metadata.uid, metadata.deletion);
    let is_same_answer =
        (old.is_attached, &old.attach_error, &old.detach_error) == (*is_attached, attach_error, detach_error);
    is_same_object && is_same_answer
}

fn enqueue(volumes: impl IntoIterator<Item = VolumeName>) -> Vec<Effect> {
    let volumes: BTreeSet<VolumeName> = volumes.into_iter().collect();
    volumes.into_iter().map(|volume| Effect::Enqueue(volume.key(), Cause::Event)).collect()
}
