//! Reads one pod, the disks behind its volumes, and the other pods that use these.

use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::{Key, Kind, ObjectReference};
use shared::api::pod::LIVE;
use shared::api::pod::volume::VolumeClaim;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};

use crate::memory::Volumes;
use crate::objects::label::Usage;
use crate::objects::pod::{Pod, PodSource, VolumeLabel};
use crate::objects::volume::{Disk, PersistentVolume, Source};
use crate::objects::{CsiDriver, PersistentVolumeClaim};

#[derive(Debug)]
pub struct Observed {
    /// None if it is gone or has ended.
    pub pod: Option<Arc<Pod>>,
    /// Its volumes.
    pub volumes: Vec<Volume>,
}

#[derive(Debug)]
pub struct Volume {
    pub name: Box<str>,
    pub label: VolumeLabel,
    pub state: State,
}

#[derive(Debug)]
pub enum State {
    Disk {
        disk: Disk,
        /// Whether a kubelet can mount it with a label.
        mounts_with_label: bool,
        /// How the pod uses it, as far as it is remembered.
        known: Option<Usage>,
        others: Vec<Other>,
    },
    /// No kubelet mounts it with a label.
    Other,
    /// What is behind it is not known yet.
    Unbound(Unbound),
}

/// Another pod that uses the disk.
#[derive(Debug)]
pub struct Other {
    pub key: Key,
    pub usage: Usage,
    /// None if it is gone, and was not forgotten yet.
    pub pod: Option<ObjectReference>,
}

/// Why a claim leads to no disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unbound {
    NoClaim(Box<str>),
    /// An ephemeral volume's claim that was not made for the pod.
    NotItsOwn(Box<str>),
    NotBound(Box<str>),
    NoVolume(Text),
    /// The volume is bound to another claim.
    Anothers(Text),
    Invalid(Box<str>),
}

pub struct Caches {
    /// Those that have not ended.
    pub pods: Arc<Cache<Pod>>,
    pub persistent_volume_claims: Arc<Cache<PersistentVolumeClaim>>,
    pub persistent_volumes: Arc<Cache<PersistentVolume>>,
    pub csi_drivers: Arc<Cache<CsiDriver>>,
    pub remembered: Arc<Volumes>,
    pods_by_claim: IndexId,
}

pub struct Informers {
    pub(crate) pods: Informer<Pod>,
    pub(crate) persistent_volume_claims: Informer<PersistentVolumeClaim>,
    pub(crate) persistent_volumes: Informer<PersistentVolume>,
    pub(crate) csi_drivers: Informer<CsiDriver>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let mut pods = InformerBuilder::<Pod>::new().fields(LIVE);
        let pods_by_claim = pods.index(|pod, emit| pod.claim_keys().for_each(|claim| emit(IndexValue::from(&claim))));
        let informers = Informers {
            pods: pods.build(),
            persistent_volume_claims: InformerBuilder::new().build(),
            persistent_volumes: InformerBuilder::new().build(),
            csi_drivers: InformerBuilder::new().build(),
        };
        let caches = Self {
            pods: informers.pods.cache(),
            persistent_volume_claims: informers.persistent_volume_claims.cache(),
            persistent_volumes: informers.persistent_volumes.cache(),
            csi_drivers: informers.csi_drivers.cache(),
            remembered: Arc::default(),
            pods_by_claim,
        };
        (caches, informers)
    }

    pub fn observe(&self, key: &Key) -> Observed {
        let pod = self.pods.get(key);
        let volumes = pod.iter().flat_map(|pod| {
            pod.volumes.iter().map(|volume| Volume {
                name: volume.name.clone(),
                label: volume.label.clone(),
                state: self.state(pod, &volume.source),
            })
        });
        Observed { volumes: volumes.collect(), pod }
    }

    fn state(&self, pod: &Pod, source: &PodSource) -> State {
        let claimed = match source {
            PodSource::Disk(disk) => return self.disk(pod, disk),
            PodSource::Other => return State::Other,
            PodSource::Claim(claim) => self.volume(pod, claim),
        };
        match claimed {
            Ok(volume) => match &volume.source {
                Source::Disk(disk) => self.disk(pod, disk),
                Source::Other => State::Other,
                Source::Invalid(error) => State::Unbound(Unbound::Invalid(error.clone())),
            },
            Err(unbound) => State::Unbound(unbound),
        }
    }

    /// Upstream: `createInTreeVolumeSpec`, `pkg/controller/volume/attachdetach/util/util.go`.
    fn volume(&self, pod: &Pod, claim: &VolumeClaim) -> Result<Arc<PersistentVolume>, Unbound> {
        let VolumeClaim { name: claim, is_ephemeral } = claim;
        let key = Key::new(pod.metadata.namespace(), claim);
        let found = self.persistent_volume_claims.get(&key).ok_or_else(|| Unbound::NoClaim(claim.clone()))?;
        if *is_ephemeral && !found.metadata.is_controlled_by(pod.metadata.uid) {
            return Err(Unbound::NotItsOwn(claim.clone()));
        }
        let name = found.volume.clone().ok_or_else(|| Unbound::NotBound(claim.clone()))?;
        let volume = self.persistent_volumes.get(&Key::new("", &name));
        let volume = volume.ok_or_else(|| Unbound::NoVolume(name.clone()))?;
        let is_bound = volume.claim.as_ref().is_some_and(|(_, uid)| *uid == found.metadata.uid);
        is_bound.then_some(volume).ok_or(Unbound::Anothers(name))
    }

    fn disk(&self, pod: &Pod, disk: &Disk) -> State {
        let key = &pod.metadata.key;
        let driver = disk.driver.as_ref().map(|driver| self.csi_drivers.get(&Key::new("", driver)));
        let others = self.remembered.others(key, &disk.name).into_iter().flat_map(|(usage, pods)| {
            pods.into_iter().map(move |key| {
                let pod = self.pods.get(&key).map(|pod| pod.reference());
                Other { key, usage: usage.clone(), pod }
            })
        });
        State::Disk {
            disk: disk.clone(),
            mounts_with_label: driver.is_none_or(|driver| driver.is_some_and(|driver| driver.mounts_with_label())),
            known: self.remembered.usage(key, pod.metadata.uid, &disk.name),
            others: others.collect(),
        }
    }

    /// The pods that have a volume of this claim.
    pub(crate) fn pods_of(&self, claim: &Key) -> Vec<Arc<Pod>> {
        self.pods.by_index(self.pods_by_claim, &claim.into())
    }
}
