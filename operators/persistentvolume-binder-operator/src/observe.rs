//! Reads a claim with the volumes that it could have, or a volume with its claim.

use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::{Key, Kind, Object};
use shared::api::pod::LIVE;
use shared::api::resource::PODS;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder, Need};
use shared::transport::api_error::ResultExt;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::memory::Memory;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::recycler::{PodEvent, PodId, RecyclerPod, Recyclers};
use crate::objects::volume::PersistentVolume;
use crate::objects::{Pod, StorageClass};

#[derive(Clone, Debug)]
pub struct Observed {
    pub claim: Arc<PersistentVolumeClaim>,
    /// Of its class.
    pub class: Option<Arc<StorageClass>>,
    /// The class of claims that have none.
    pub default_class: Option<Text>,
    /// The volume that it names.
    pub named: Option<Candidate>,
    /// Where it names none: the volumes that are bound to it or to no claim, by name.
    pub candidates: Vec<Candidate>,
    /// The pods that wait for it on no node yet, by name.
    pub pods: Vec<Text>,
    pub live_volume: Live<PersistentVolume>,
}

#[derive(Clone, Debug)]
pub struct Candidate {
    pub volume: Arc<PersistentVolume>,
    /// Another claim that may have its data on this volume, although the volume does not say so.
    pub held_by: Option<Holder>,
}

/// A claim that a volume may belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Its binding to the volume is complete.
    Bound(Key),
    /// It had the volume before etcd was restored from a backup.
    BeforeRestore(Key),
}

#[derive(Clone, Debug)]
pub struct ObservedVolume {
    pub volume: Arc<PersistentVolume>,
    /// The claim of the name that it is bound to.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    pub live_claim: Live<PersistentVolumeClaim>,
    pub live_volume: Live<PersistentVolume>,
    /// Pods that have not ended and name its claim; none if they were not read.
    pub pods: Option<Vec<Key>>,
    /// The claim that it had before etcd was restored from a backup, if it has none now.
    pub before_restore: Option<Key>,
    pub recycler: Recycler,
}

/// The pod that is named after a volume to empty it.
#[derive(Clone, Debug)]
pub enum Recycler {
    None,
    /// Nobody knows what it has done: a former process or anybody else has made it.
    Unknown(Arc<RecyclerPod>),
    /// This process has made it.
    Own {
        id: PodId,
        /// None if it is gone.
        pod: Option<Arc<RecyclerPod>>,
        /// The events about it that the volume was not told of, the oldest first.
        events: Vec<Arc<PodEvent>>,
    },
}

/// What the apiserver has of an object.
#[derive(Clone, Debug)]
pub enum Live<T> {
    Unread,
    Gone,
    Read(Arc<T>),
}

pub struct Caches {
    pub persistent_volume_claims: Arc<Cache<PersistentVolumeClaim>>,
    pub persistent_volumes: Arc<Cache<PersistentVolume>>,
    pub storage_classes: Arc<Cache<StorageClass>>,
    /// Of the namespaces with claims that need a volume, those pods that have not ended and are on no node.
    pub pods: Arc<Cache<Pod>>,
    /// Of the volumes that are recycled, the pods that are named after them.
    pub recycler_pods: Arc<Cache<RecyclerPod>>,
    /// The events about these.
    pub pod_events: Arc<Cache<PodEvent>>,
    pub recyclers: Recyclers,
    pub memory: Memory,
    indices: Indices,
}

struct Indices {
    claims_by_volume: IndexId,
    waiting_by_class: IndexId,
    volumes_by_claim: IndexId,
    free_volumes: IndexId,
    pods_by_claim: IndexId,
    events_by_pod: IndexId,
}

pub struct Informers {
    pub(crate) persistent_volume_claims: Informer<PersistentVolumeClaim>,
    pub(crate) persistent_volumes: Informer<PersistentVolume>,
    pub(crate) storage_classes: Informer<StorageClass>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) recycling: Recycling,
    /// The claims that need a volume.
    pub(crate) waiting: Need,
    /// Their namespaces.
    pub(crate) waiting_in: Need,
}

/// What is followed while volumes are recycled.
pub(crate) struct Recycling {
    pub(crate) pods: Informer<RecyclerPod>,
    /// About these pods.
    pub(crate) events: Informer<PodEvent>,
    /// The volumes that are recycled.
    pub(crate) need: Need,
}

const UNSCHEDULED: &str = "spec.nodeName=";

impl Caches {
    pub fn new(recyclers: Recyclers) -> (Self, Informers) {
        let mut claims = InformerBuilder::<PersistentVolumeClaim>::new();
        let claims_by_volume = claims.index(|claim, emit| {
            if !claim.spec.volume_name.is_empty() {
                emit(IndexValue::Text(claim.spec.volume_name.clone()));
            }
        });
        let waiting_by_class = claims.index(|claim, emit| {
            if claim.needs_volume() {
                emit(IndexValue::Text(claim.class().clone()));
            }
        });
        let mut claims = claims.build();
        let waiting = claims.need(PersistentVolumeClaim::needs_volume);
        let waiting_in = claims.need_in(|claim| claim.needs_volume().then(|| Text::new(claim.metadata.namespace())));
        let mut volumes = InformerBuilder::<PersistentVolume>::new();
        let volumes_by_claim = volumes
            .index(|volume, emit| volume.spec.claim_ref.iter().for_each(|reference| emit((&reference.key).into())));
        let free_volumes = volumes.index(|volume, emit| {
            if volume.spec.claim_ref.is_none() {
                emit(free());
            }
        });
        let mut volumes = volumes.build();
        let recycled = volumes.need_by_name(PersistentVolume::is_recycled);
        // Where templates have two namespaces, what they have in common is all of them.
        let of_recyclers = recyclers.namespace().unwrap_or_default();
        let recycler_pods = InformerBuilder::<RecyclerPod>::new().namespace(of_recyclers).build();
        let mut pod_events = InformerBuilder::<PodEvent>::new().namespace(of_recyclers);
        let events_by_pod =
            pod_events.index(|event, emit| event.pod().into_iter().for_each(|pod| emit(IndexValue::Uid(pod))));
        let mut pods = InformerBuilder::<Pod>::new().fields(format!("{UNSCHEDULED},{LIVE}"));
        let pods_by_claim = pods.index(|pod, emit| pod.claim_keys().for_each(|claim| emit((&claim).into())));
        let informers = Informers {
            persistent_volume_claims: claims,
            persistent_volumes: volumes,
            storage_classes: InformerBuilder::new().build(),
            pods: pods.build(),
            recycling: Recycling { pods: recycler_pods, events: pod_events.build(), need: recycled },
            waiting,
            waiting_in,
        };
        let caches = Self {
            persistent_volume_claims: informers.persistent_volume_claims.cache(),
            persistent_volumes: informers.persistent_volumes.cache(),
            storage_classes: informers.storage_classes.cache(),
            pods: informers.pods.cache(),
            recycler_pods: informers.recycling.pods.cache(),
            pod_events: informers.recycling.events.cache(),
            recyclers,
            memory: Memory::default(),
            indices: Indices {
                claims_by_volume,
                waiting_by_class,
                volumes_by_claim,
                free_volumes,
                pods_by_claim,
                events_by_pod,
            },
        };
        (caches, informers)
    }

    pub fn observe_claim(&self, key: &Key) -> Option<Observed> {
        let claim = self.persistent_volume_claims.get(key)?;
        let class = self.class_of(&claim);
        let default_class = if claim.has_class() { None } else { self.default_class() };
        let named = self.persistent_volumes.get(&Key::new("", &claim.spec.volume_name));
        let named = named.map(|volume| self.candidate(volume, &claim));
        let (mut candidates, mut pods) = (Vec::new(), Vec::new());
        if claim.needs_volume() {
            candidates = self.candidates(&claim);
            let waiting = self.pods.by_index(self.indices.pods_by_claim, &key.into());
            pods.extend(waiting.iter().map(|pod| Text::new(pod.metadata.name())));
        }
        Some(Observed { claim, class, default_class, named, candidates, pods, live_volume: Live::Unread })
    }

    pub fn observe_volume(&self, key: &Key) -> Option<ObservedVolume> {
        let volume = self.persistent_volumes.get(key)?;
        let claim =
            volume.spec.claim_ref.as_ref().and_then(|reference| self.persistent_volume_claims.get(&reference.key));
        let before_restore = self.memory.claim_before_restore(key);
        let (live_claim, live_volume, recycler) = (Live::Unread, Live::Unread, self.recycler(&volume));
        Some(ObservedVolume { volume, claim, live_claim, live_volume, pods: None, before_restore, recycler })
    }

    fn recycler(&self, volume: &PersistentVolume) -> Recycler {
        let key = &volume.metadata.key;
        if let Some(id) = self.memory.recycler(key) {
            let pod = self.recycler_pods.get(&id.key).filter(|pod| pod.metadata.uid == id.uid);
            let mut events = self.pod_events.by_index(self.indices.events_by_pod, &IndexValue::Uid(id.uid));
            events.retain(|event| !self.memory.has_relayed(key, event.metadata.uid));
            events.sort_unstable_by_key(|event| event.metadata.resource_version);
            return Recycler::Own { id, pod, events };
        }
        let pod = self.recyclers.of(volume).and_then(|recycler| self.recycler_pods.get(&recycler.key(key.name())));
        pod.map_or(Recycler::None, Recycler::Unknown)
    }

    fn class_of(&self, claim: &PersistentVolumeClaim) -> Option<Arc<StorageClass>> {
        let class = claim.class();
        if class.is_empty() { None } else { self.storage_classes.get(&Key::new("", class)) }
    }

    /// The newest one, and the first by name of those of a second.
    ///
    /// Upstream: `GetDefaultClass`, `pkg/volume/util/storageclass.go`.
    fn default_class(&self) -> Option<Text> {
        let classes = self.storage_classes.all();
        let defaults = classes.iter().filter(|class| class.is_default());
        // The list is by name, and of several that are equal `max_by_key` gives the last.
        let newest = defaults.rev().max_by_key(|class| class.metadata.creation);
        newest.map(|class| Text::new(class.metadata.name()))
    }

    fn candidates(&self, claim: &PersistentVolumeClaim) -> Vec<Candidate> {
        let own = self.volumes_of_claim(&claim.metadata.key).into_iter().filter(|volume| volume.is_bound_to(claim));
        let free = self.persistent_volumes.by_index(self.indices.free_volumes, &free());
        let free = free.into_iter().filter(|volume| !self.memory.has_bound_since(&volume.metadata));
        let mut candidates: Vec<_> = own.chain(free).map(|volume| self.candidate(volume, claim)).collect();
        candidates.sort_unstable_by(|a, b| a.volume.metadata.key.cmp(&b.volume.metadata.key));
        candidates
    }

    fn candidate(&self, volume: Arc<PersistentVolume>, claim: &PersistentVolumeClaim) -> Candidate {
        let is_free = volume.spec.claim_ref.is_none();
        let is_holder = |other: &Arc<PersistentVolumeClaim>| {
            let is_lost = claim.is_bind_completed() && other.status.phase == "Lost";
            other.is_bind_completed() && other.metadata.uid != claim.metadata.uid && !is_lost
        };
        let bound = || self.claims_of_volume(&volume.metadata.key).into_iter().find(is_holder);
        let before_restore = || {
            let before = self.memory.claim_before_restore(&volume.metadata.key);
            before.filter(|before| *before != claim.metadata.key).map(Holder::BeforeRestore)
        };
        let holder = || bound().map(|holder| Holder::Bound(holder.metadata.key.clone())).or_else(before_restore);
        Candidate { held_by: is_free.then(holder).flatten(), volume }
    }

    /// The claims that name a volume.
    pub(crate) fn claims_of_volume(&self, volume: &Key) -> Vec<Arc<PersistentVolumeClaim>> {
        self.persistent_volume_claims.by_index(self.indices.claims_by_volume, &volume.into())
    }

    /// The volumes that name a claim.
    pub(crate) fn volumes_of_claim(&self, claim: &Key) -> Vec<Arc<PersistentVolume>> {
        self.persistent_volumes.by_index(self.indices.volumes_by_claim, &claim.into())
    }

    /// The claims of a class that need a volume.
    pub(crate) fn waiting(&self, class: &Text) -> Vec<Arc<PersistentVolumeClaim>> {
        self.persistent_volume_claims.by_index(self.indices.waiting_by_class, &IndexValue::Text(class.clone()))
    }
}

fn free() -> IndexValue {
    IndexValue::Text(Text::default())
}

async fn live<T: Kind + Object>(control: &Control, key: &Key) -> anyhow::Result<Live<T>> {
    let read = control.get::<T>(T::STATIC_RESOURCE, key).await.unless_absent();
    let read = read.with_context(|| format!("cannot read {} {key}", T::RESOURCE.kind))?;
    Ok(read.map_or(Live::Gone, |object| Live::Read(Arc::new(object))))
}

/// Reads the volume that a claim names.
pub(crate) async fn named_volume(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let live_volume = live(control, &Key::new("", &observed.claim.spec.volume_name)).await?;
    Ok(Observed { live_volume, ..observed })
}

/// Reads the claim of a volume at first. To reclaim the volume, reads it too, and the pods that name its claim.
pub(crate) async fn volume_and_claim(control: &Control, observed: ObservedVolume) -> anyhow::Result<ObservedVolume> {
    let Some(reference) = &observed.volume.spec.claim_ref else { return Ok(observed) };
    let (claim, live_claim) = (&reference.key, live(control, &reference.key).await?);
    if !observed.volume.is_given_back() {
        return Ok(ObservedVolume { live_claim, ..observed });
    }
    let live_volume = live(control, &observed.volume.metadata.key).await?;
    let mut pods = Vec::new();
    if observed.volume.spec.reclaim_policy == "Recycle" {
        let selection = Selection { field_selector: LIVE, ..Selection::default() };
        let add = |pod: Pod| {
            if pod.claim_keys().any(|key| key == *claim) {
                pods.push(pod.metadata.key.clone());
            }
        };
        let listed = control.list_each(&PODS, claim.namespace(), selection, Accept::Object, add).await;
        listed.context("cannot list the pods of the claim's namespace")?;
        pods.sort_unstable();
    }
    Ok(ObservedVolume { live_claim, live_volume, pods: Some(pods), ..observed })
}
