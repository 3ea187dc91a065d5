//! Reads the desired and the actual state of one volume on every node, or of one node with every volume.
//!
//! Desired are the volumes of active pods, found through their claims. Actual are VolumeAttachments and what nodes
//! report. Upstream accumulates both from events; here they follow from the objects, so a restart changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::{Key, Kind, ObjectReference};
use shared::api::pod::volume::VolumeClaim;
use shared::api::resource::NODES;
use shared::api::time::Time;
use shared::following::cache::{Cache, Change, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder, Need};
use shared::transport::api_error::ResultExt;
use shared::transport::client::Accept;
use shared::transport::clock::instant;
use shared::working::control::{Control, Selection};

use crate::memory::{Memory, Remembered, Report};
use crate::objects::node::Node;
use crate::objects::pod::Pod;
use crate::objects::volume::{PersistentVolume, Plugin, Spec, VolumeName};
use crate::objects::{CsiDriver, PersistentVolumeClaim, Source, VOLUME_ATTACHMENTS, VolumeAttachment};

/// A volume on every node that has it or needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub volume: VolumeName,
    /// By node.
    pub places: Vec<Place>,
    /// When the memory was read.
    pub at: Instant,
}

/// A volume on one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub node: Text,
    /// None if the node does not exist.
    pub state: Option<Arc<Node>>,
    pub attachment: Option<Arc<VolumeAttachment>>,
    /// Whether the node is gone, and did not use the volume in its last state.
    pub is_left_unused: bool,
    /// The active pods of the node that have the volume, the oldest first.
    pub uses: Vec<Use>,
    pub remembered: Remembered,
    /// The node by a live read; none if it was not read.
    pub live: Option<Live>,
}

/// What a live read of a node shows of the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    pub is_in_use: bool,
    pub is_reported: bool,
}

/// A pod that has the volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    pub pod: ObjectReference,
    pub created: Option<Time>,
    pub spec: Arc<Spec>,
    pub wants: Wants,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// The volume on its node.
    Attached,
    /// Only that it is not detached: its claim is gone, or nothing may be attached to its node.
    Kept,
}

/// A node with every volume that it reports, needs, or has to give back.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedNode {
    pub name: Text,
    /// None if it does not exist.
    pub node: Option<Arc<Node>>,
    pub places: BTreeMap<VolumeName, Place>,
}

pub struct Caches {
    pub persistent_volumes: Arc<Cache<PersistentVolume>>,
    pub persistent_volume_claims: Arc<Cache<PersistentVolumeClaim>>,
    /// The pods of the namespaces with claims of volumes that can be attached; all, while a node has a volume that only a
    /// pod's own spec can explain.
    pub pods: Arc<Cache<Pod>>,
    pub nodes: Arc<Cache<Node>>,
    pub csi_drivers: Arc<Cache<CsiDriver>>,
    pub volume_attachments: Arc<Cache<VolumeAttachment>>,
    pub memory: Arc<Memory>,
    inline: Need,
    indices: Indices,
}

struct Indices {
    persistent_volumes_by_volume: IndexId,
    persistent_volumes_by_claim: IndexId,
    pods_by_claim: IndexId,
    pods_by_inline: IndexId,
    pods_by_node: IndexId,
    nodes_by_reported: IndexId,
    attachments_by_source: IndexId,
    attachments_by_node: IndexId,
}

pub(crate) struct Informers {
    pub(crate) persistent_volumes: Informer<PersistentVolume>,
    pub(crate) persistent_volume_claims: Informer<PersistentVolumeClaim>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) nodes: Informer<Node>,
    pub(crate) csi_drivers: Informer<CsiDriver>,
    pub(crate) volume_attachments: Informer<VolumeAttachment>,
    /// The namespaces with claims of volumes that can be attached.
    pub(crate) claims: Need,
    /// The nodes and VolumeAttachments with volumes that only a pod's own spec can explain.
    pub(crate) inline: Need,
}

/// Unscheduled pods need nothing on any node.
const SCHEDULED: &str = "spec.nodeName!=";

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let mut persistent_volumes = InformerBuilder::<PersistentVolume>::new();
        let persistent_volumes_by_volume = persistent_volumes.index(|volume, emit| {
            volume.spec.iter().for_each(|spec| emit(IndexValue::Text(spec.volume.text().clone())));
        });
        let persistent_volumes_by_claim =
            persistent_volumes.index(|volume, emit| volume.claim.iter().for_each(|claim| emit((&claim.key).into())));
        let mut persistent_volumes = persistent_volumes.build();
        let claims = persistent_volumes.need_in(|volume| {
            let claim = volume.claim.as_ref().filter(|_| volume.spec.is_some());
            claim.map(|claim| Text::new(claim.key.namespace()))
        });
        let mut pods = InformerBuilder::<Pod>::new().fields(SCHEDULED);
        let pods_by_claim = pods.index(|pod, emit| pod.claim_keys().for_each(|claim| emit((&claim).into())));
        let pods_by_inline = pods.index(|pod, emit| {
            pod.inline.iter().for_each(|spec| emit(IndexValue::Text(spec.volume.text().clone())));
        });
        let pods_by_node = pods.index(|pod, emit| emit(IndexValue::Text(pod.node.clone())));
        let mut nodes = InformerBuilder::<Node>::new();
        let nodes_by_reported = nodes.index(|node, emit| {
            node.attached.iter().for_each(|attached| emit(IndexValue::Text(attached.name.text().clone())));
        });
        let mut attachments = InformerBuilder::<VolumeAttachment>::new();
        let attachments_by_source = attachments.index(|attachment, emit| match &attachment.source {
            Source::PersistentVolume(name) => emit(IndexValue::Text(name.clone())),
            Source::Inline(volume) => emit(IndexValue::Text(volume.text().clone())),
            Source::None => {}
        });
        let attachments_by_node = attachments.index(|attachment, emit| emit(IndexValue::Text(attachment.node.clone())));
        let mut volume_attachments = attachments.build();
        let inline = volume_attachments.need(|attachment| matches!(attachment.source, Source::Inline(_)));
        let informers = Informers {
            persistent_volumes,
            persistent_volume_claims: InformerBuilder::new().build(),
            pods: pods.build(),
            nodes: nodes.build(),
            csi_drivers: InformerBuilder::new().build(),
            volume_attachments,
            claims,
            inline,
        };
        let caches = Self {
            persistent_volumes: informers.persistent_volumes.cache(),
            persistent_volume_claims: informers.persistent_volume_claims.cache(),
            pods: informers.pods.cache(),
            nodes: informers.nodes.cache(),
            csi_drivers: informers.csi_drivers.cache(),
            volume_attachments: informers.volume_attachments.cache(),
            memory: Arc::default(),
            inline: informers.inline.clone(),
            indices: Indices {
                persistent_volumes_by_volume,
                persistent_volumes_by_claim,
                pods_by_claim,
                pods_by_inline,
                pods_by_node,
                nodes_by_reported,
                attachments_by_source,
                attachments_by_node,
            },
        };
        (caches, informers)
    }

    /// Reads a volume on every node.
    pub fn observe(&self, volume: &VolumeName) -> Observed {
        let at = instant();
        let mut uses = self.uses(volume, None);
        let attached = self.attachments(volume).into_iter().map(|attachment| attachment.node.clone());
        let reporting = self.nodes.by_index(self.indices.nodes_by_reported, &IndexValue::Text(volume.text().clone()));
        let reporting = reporting.into_iter().map(|node| Text::new(node.metadata.name()));
        let nodes: BTreeSet<Text> =
            uses.keys().cloned().chain(attached).chain(reporting).chain(self.memory.nodes_of(volume)).collect();
        let places = nodes.into_iter().map(|node| {
            let uses = uses.remove(&node).unwrap_or_default();
            self.place(volume, node, uses, at)
        });
        Observed { volume: volume.clone(), places: places.collect(), at }
    }

    fn place(&self, volume: &VolumeName, node: Text, uses: Vec<Use>, at: Instant) -> Place {
        let state = self.nodes.get(&Key::new("", &node));
        let attachment = volume.attachment(&node).and_then(|key| self.volume_attachments.get(&key));
        let mut remembered = self.memory.get(volume, &node, at);
        remembered.is_requested &= attachment.is_none();
        let is_left = |attachment: &Arc<VolumeAttachment>| self.memory.is_left_unused(attachment.metadata.uid);
        let is_left_unused = state.is_none() && attachment.as_ref().is_some_and(is_left);
        Place { node, state, attachment, is_left_unused, uses, remembered, live: None }
    }

    /// The VolumeAttachments of a volume that have the name for their node. Others are somebody else's.
    fn attachments(&self, volume: &VolumeName) -> Vec<Arc<VolumeAttachment>> {
        let by = |source: &str| {
            let source = IndexValue::Text(Text::new(source));
            self.volume_attachments.by_index(self.indices.attachments_by_source, &source)
        };
        let mut attachments = by(volume.as_str());
        attachments.extend(self.volumes(volume).iter().flat_map(|persistent| by(persistent.metadata.name())));
        let has_name = |of: &VolumeAttachment| volume.attachment(&of.node).is_some_and(|key| key == of.metadata.key);
        attachments.retain(|attachment| has_name(attachment));
        attachments
    }

    /// The PersistentVolumes that are this volume: usually one, but nothing forbids several.
    fn volumes(&self, volume: &VolumeName) -> Vec<Arc<PersistentVolume>> {
        let value = IndexValue::Text(volume.text().clone());
        self.persistent_volumes.by_index(self.indices.persistent_volumes_by_volume, &value)
    }

    /// The active pods that have this volume, by node: by each, or by this one alone.
    fn uses(&self, volume: &VolumeName, on: Option<&Text>) -> BTreeMap<Text, Vec<Use>> {
        let mut uses: BTreeMap<Text, Vec<Use>> = BTreeMap::new();
        if !self.can_attach(volume) {
            return uses;
        }
        let active_pods = |index, value: &IndexValue| {
            let mut pods = self.pods.by_index(index, value);
            pods.retain(|pod| pod.is_active() && on.is_none_or(|node| pod.node == *node));
            pods
        };
        for persistent in self.volumes(volume) {
            let Some(claim) = &persistent.claim else { continue };
            for pod in active_pods(self.indices.pods_by_claim, &(&claim.key).into()) {
                if let Some(used) = self.used(&pod, &persistent) {
                    uses.entry(pod.node.clone()).or_default().push(used);
                }
            }
        }
        for pod in active_pods(self.indices.pods_by_inline, &IndexValue::Text(volume.text().clone())) {
            if let Some(spec) = pod.inline.iter().find(|spec| spec.volume == *volume) {
                uses.entry(pod.node.clone()).or_default().push(self.use_of(&pod, spec, true));
            }
        }
        let age = |of: &Use| (of.created, of.pod.key.clone());
        for uses in uses.values_mut() {
            uses.sort_by_key(age);
        }
        uses
    }

    /// How an active pod uses this volume, whose claim it names.
    ///
    /// Upstream: `createInTreeVolumeSpec`, `pkg/controller/volume/attachdetach/util/util.go`. There a pod keeps a volume
    /// until it ends, whatever becomes of its claim meanwhile.
    fn used(&self, pod: &Pod, persistent: &PersistentVolume) -> Option<Use> {
        let (spec, claim) = (persistent.spec.as_ref()?, persistent.claim.as_ref()?);
        let named = pod.claims.iter().find(|named| pod.claim_key(named) == claim.key)?;
        let existing = self.persistent_volume_claims.get(&claim.key);
        let is_bound = match &existing {
            None => false,
            Some(existing) if existing.metadata.uid != claim.uid || !is_for(existing, pod, named) => return None,
            Some(existing) => *existing.volume == *persistent.metadata.name(),
        };
        Some(self.use_of(pod, spec, is_bound))
    }

    fn use_of(&self, pod: &Pod, spec: &Arc<Spec>, is_bound: bool) -> Use {
        let is_managed = || self.nodes.get(&Key::new("", &pod.node)).is_some_and(|node| node.is_managed());
        let wants = if is_bound && is_managed() { Wants::Attached } else { Wants::Kept };
        Use { pod: pod.reference(), created: pod.metadata.creation, spec: Arc::clone(spec), wants }
    }

    /// Whether nodes need an attachment for this volume. A driver that did not register needs one.
    ///
    /// Upstream: `skipAttach`, `pkg/volume/csi/csi_plugin.go`.
    fn can_attach(&self, volume: &VolumeName) -> bool {
        match volume.plugin() {
            Plugin::Csi { driver, handle: _ } => {
                self.csi_drivers.get(&Key::new("", driver)).is_none_or(|driver| driver.requires_attach)
            }
            Plugin::OfNode(_) => true,
            Plugin::Other => false,
        }
    }

    /// Reads a node with its volumes.
    pub fn observe_node(&self, key: &Key) -> ObservedNode {
        let (name, node, at) = (Text::new(key.name()), self.nodes.get(key), instant());
        let mut volumes: BTreeSet<VolumeName> = self.memory.volumes_on(&name).into_iter().collect();
        volumes.extend(node.iter().flat_map(|node| node.attached.iter().map(|attached| attached.name.clone())));
        volumes.extend(self.volumes_of_pods_on(&name));
        let places = volumes.into_iter().map(|volume| {
            let uses = self.uses(&volume, Some(&name)).remove(&name).unwrap_or_default();
            let place = self.place(&volume, name.clone(), uses, at);
            (volume, place)
        });
        let places = places.collect();
        ObservedNode { name, node, places }
    }

    /// The volumes of the pods of a node.
    pub(crate) fn volumes_of_pods_on(&self, node: &Text) -> BTreeSet<VolumeName> {
        let pods = self.pods.by_index(self.indices.pods_by_node, &IndexValue::Text(node.clone()));
        pods.iter().flat_map(|pod| self.volumes_of_pod(pod)).collect()
    }

    /// The volumes of a pod's claims and of its own spec.
    pub(crate) fn volumes_of_pod(&self, pod: &Pod) -> BTreeSet<VolumeName> {
        let claimed = pod.claim_keys().flat_map(|claim| self.volumes_of_claim(&claim));
        claimed.chain(pod.inline.iter().map(|spec| spec.volume.clone())).collect()
    }

    /// Follows all pods while a node uses or reports a volume without a PersistentVolume. A pod's own spec may define it,
    /// and no selector finds such a pod. Its kubelet says that it uses the volume before it waits for the attachment.
    pub(crate) fn note_inline(&self, change: Change<'_, Node>) {
        // Before the PersistentVolumes are listed, no volume seems to have one.
        if !self.persistent_volumes.progress().synced {
            return;
        }
        let name = Text::new(change.latest().metadata.name());
        let volumes = change
            .existing()
            .into_iter()
            .flat_map(|node| node.in_use.iter().chain(node.attached.iter().map(|attached| &attached.name)));
        let has_inline = volumes.filter(|volume| volume.may_be_inline()).any(|volume| {
            let value = IndexValue::Text(volume.text().clone());
            self.persistent_volumes.count_by_index(self.indices.persistent_volumes_by_volume, &value) == 0
        });
        self.memory.note_inline(&name, has_inline, &self.inline);
    }

    /// Notes which attached volumes a node did not use when it was deleted: nothing mounts them there any more.
    ///
    /// Upstream: `nodeDelete`, `pkg/controller/volume/attachdetach/attach_detach_controller.go`.
    pub(crate) fn note_left(&self, change: Change<'_, Node>) {
        let Change::Deleted(node) = change else { return };
        // Of a node that a list lacks only the cached state is known, after which it may have used more volumes. The state
        // in the event of a deletion is newer than all that was seen before.
        let is_last = node.metadata.resource_version > self.nodes.progress().resource_version;
        let name = Text::new(node.metadata.name());
        let used: BTreeSet<Key> = node.in_use.iter().filter_map(|volume| volume.attachment(&name)).collect();
        for attachment in self.volume_attachments.by_index(self.indices.attachments_by_node, &IndexValue::Text(name)) {
            let VolumeAttachment { metadata, .. } = &*attachment;
            self.memory.note_left(metadata.uid, is_last && !used.contains(&metadata.key));
        }
    }

    /// The volumes that are for a claim of this name.
    pub(crate) fn volumes_of_claim(&self, claim: &Key) -> Vec<VolumeName> {
        let volumes = self.persistent_volumes.by_index(self.indices.persistent_volumes_by_claim, &claim.into());
        volumes.iter().filter_map(|volume| volume.spec.as_ref()).map(|spec| spec.volume.clone()).collect()
    }

    /// The volume of a VolumeAttachment.
    pub(crate) fn volume_of(&self, attachment: &VolumeAttachment) -> Option<VolumeName> {
        match &attachment.source {
            Source::Inline(volume) => Some(volume.clone()),
            Source::None => None,
            Source::PersistentVolume(name) => {
                let persistent = self.persistent_volumes.get(&Key::new("", name));
                let spec = persistent.map(|persistent| persistent.spec.as_ref().map(|spec| spec.volume.clone()));
                spec.unwrap_or_else(|| self.volume_by_name_of(attachment))
            }
        }
    }

    /// The volume of a VolumeAttachment whose PersistentVolume is gone, if its node reports it or something is remembered.
    fn volume_by_name_of(&self, attachment: &VolumeAttachment) -> Option<VolumeName> {
        let VolumeAttachment { metadata, node, .. } = attachment;
        let state = self.nodes.get(&Key::new("", node));
        let reported = state.iter().flat_map(|state| state.attached.iter().map(|attached| attached.name.clone()));
        let mut volumes = self.memory.volumes_on(node).into_iter().chain(reported);
        volumes.find(|volume| volume.attachment(node).is_some_and(|key| key == metadata.key))
    }

    /// The volumes of the VolumeAttachments for a node.
    pub(crate) fn volumes_attached_to(&self, node: &Text) -> BTreeSet<VolumeName> {
        let attachments =
            self.volume_attachments.by_index(self.indices.attachments_by_node, &IndexValue::Text(node.clone()));
        attachments.iter().filter_map(|attachment| self.volume_of(attachment)).collect()
    }

    /// The names of all volumes that have a PersistentVolume or are reported by a node.
    pub(crate) fn volumes_of_all(&self) -> BTreeSet<VolumeName> {
        let (volumes, nodes) = (self.persistent_volumes.all(), self.nodes.all());
        let reported = nodes.iter().flat_map(|node| node.attached.iter().map(|attached| attached.name.clone()));
        volumes
            .iter()
            .filter_map(|volume| volume.spec.as_ref())
            .map(|spec| spec.volume.clone())
            .chain(reported)
            .collect()
    }

    /// The number of volumes of pods, by node and plugin.
    ///
    /// Upstream: `getVolumeInUseCount`, `pkg/controller/volume/attachdetach/metrics/metrics.go`.
    pub(crate) fn in_use(&self) -> BTreeMap<(Text, String), usize> {
        let mut in_use: BTreeMap<(Text, String), usize> = BTreeMap::new();
        for pod in self.pods.all() {
            for plugin in self.volumes_of_pod(&pod).iter().filter_map(VolumeName::plugin_name) {
                *in_use.entry((pod.node.clone(), plugin)).or_default() += 1;
            }
        }
        in_use
    }

    /// Observes again, with live reads of the nodes that gave the volume back, and of the VolumeAttachments that were
    /// requested and that the cache does not show: pods may have come meanwhile.
    ///
    /// Upstream: `verifyVolumeIsSafeToDetach`, `pkg/volume/util/operationexecutor/operation_generator.go`.
    pub(crate) async fn read_live(&self, control: &Control, before: Observed) -> anyhow::Result<Observed> {
        let Observed { volume, places, at: _ } = before;
        let (mut nodes, mut attachments) = (BTreeMap::new(), BTreeMap::new());
        for place in places {
            if place.is_withdrawn() {
                nodes.insert(place.node.clone(), read_node(control, &place.node, &volume).await?);
            }
            if let Some(key) = volume.attachment(&place.node).filter(|_| place.is_unseen()) {
                attachments.insert(place.node, read_attachment(control, &key).await?);
            }
        }
        let mut observed = self.observe(&volume);
        for place in &mut observed.places {
            place.live = nodes.get(&place.node).copied();
            if let Some(attachment) = attachments.remove(&place.node).filter(|_| place.is_unseen()) {
                place.remembered.is_requested = attachment.is_some();
                place.attachment = attachment;
            }
        }
        Ok(observed)
    }
}

async fn read_node(control: &Control, node: &Text, volume: &VolumeName) -> anyhow::Result<Live> {
    let read = control.get::<Node>(&NODES, &Key::new("", node)).await;
    let node = read.unless_absent().with_context(|| format!("cannot read node {node}"))?;
    let live = |node: Node| Live { is_in_use: node.uses(volume), is_reported: node.reports(volume) };
    Ok(node.map(live).unwrap_or_default())
}

/// A list of one, because the operator may list VolumeAttachments anyway.
async fn read_attachment(control: &Control, key: &Key) -> anyhow::Result<Option<Arc<VolumeAttachment>>> {
    let (field_selector, mut found) = (format!("metadata.name={}", key.name()), None);
    let selection = Selection { field_selector: &field_selector, ..Selection::default() };
    let give = |attachment| found = Some(Arc::new(attachment));
    let read = control.list_each(&VOLUME_ATTACHMENTS, "", selection, Accept::Object, give).await;
    read.with_context(|| format!("cannot read VolumeAttachment {key}"))?;
    Ok(found)
}

/// Whether a claim is the one that a pod's volume names: an ephemeral one belongs to the pod.
fn is_for(claim: &PersistentVolumeClaim, pod: &Pod, named: &VolumeClaim) -> bool {
    !named.is_ephemeral || claim.metadata.is_controlled_by(pod.metadata.uid)
}

impl Place {
    /// Whether the volume may be detached, once a live read of the node has shown no use of it.
    pub fn is_withdrawn(&self) -> bool {
        self.remembered.report == Report::Acknowledged && !self.is_deleted()
    }

    /// Whether the deletion of this VolumeAttachment was requested, and not only that of an earlier one of its name.
    pub fn is_deleted(&self) -> bool {
        self.attachment.as_ref().is_some_and(|attachment| self.remembered.deleted == Some(attachment.metadata.uid))
    }

    /// Whether only a live read can tell that there is a VolumeAttachment: it was requested, the answer may be lost, and
    /// the cache does not show it.
    pub const fn is_unseen(&self) -> bool {
        self.remembered.is_requested && self.attachment.is_none()
    }

    /// The pods that want the volume on the node.
    pub fn wanting(&self) -> impl Iterator<Item = &Use> + Clone {
        self.uses.iter().filter(|used| used.wants == Wants::Attached)
    }
}
