//! Reads one pod and the claims of its ephemeral volumes: first from the cache, and the pod live if the cache cannot
//! decide.

use std::sync::Arc;

use anyhow::Context;
use shared::api::object::{Key, Kind, ObjectReference};
use shared::api::resource::PODS;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::PersistentVolumeClaim;
use crate::objects::pod::{ClaimTemplate, LivePod, Pod, claim_key};

/// A pod whose claim is missing cannot start, whether it has a node or not.
const PENDING: &str = "status.phase=Pending";

#[derive(Debug)]
pub struct Observed {
    /// None if it is not among the pods that have not started, or if a live read shows that it is gone.
    pub pod: Option<Found>,
    pub is_live: bool,
}

#[derive(Debug)]
pub struct Found {
    pub pod: ObjectReference,
    pub is_being_deleted: bool,
    pub volumes: Vec<Volume>,
}

/// An ephemeral volume.
#[derive(Debug)]
pub struct Volume {
    pub name: Box<str>,
    /// The claim that has its claim's name.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// None before the pod was read live.
    pub template: Option<ClaimTemplate>,
}

pub struct Caches {
    /// Those that have not started.
    pub pods: Arc<Cache<Pod>>,
    pub persistent_volume_claims: Arc<Cache<PersistentVolumeClaim>>,
    pods_by_claim: IndexId,
}

pub struct Informers {
    pub(crate) pods: Informer<Pod>,
    pub(crate) persistent_volume_claims: Informer<PersistentVolumeClaim>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let persistent_volume_claims = InformerBuilder::new().metadata_only().build();
        let mut pods = InformerBuilder::<Pod>::new().fields(PENDING);
        let pods_by_claim = pods.index(|pod, emit| pod.claim_keys().for_each(|claim| emit(IndexValue::from(&claim))));
        let pods = pods.build();
        let caches =
            Self { pods: pods.cache(), persistent_volume_claims: persistent_volume_claims.cache(), pods_by_claim };
        (caches, Informers { pods, persistent_volume_claims })
    }

    pub fn observe(&self, key: &Key) -> Observed {
        let pod = self.pods.get(key).map(|pod| {
            let volumes = pod.ephemeral_volumes.iter().map(|name| self.volume(key, name.clone(), None)).collect();
            Found { pod: pod.reference(), is_being_deleted: pod.metadata.is_being_deleted(), volumes }
        });
        Observed { pod, is_live: false }
    }

    /// The pod as a live read shows it, with the claims of the cache.
    pub fn observe_live(&self, pod: Option<LivePod>) -> Observed {
        let pod = pod.map(|pod| {
            let (reference, is_being_deleted) = (pod.reference(), pod.metadata.is_being_deleted());
            let volumes = pod.ephemeral_volumes.into_iter();
            let volumes = volumes.map(|(name, template)| self.volume(&reference.key, name, Some(template))).collect();
            Found { pod: reference, is_being_deleted, volumes }
        });
        Observed { pod, is_live: true }
    }

    pub(crate) async fn live_pod(&self, control: &Control, key: &Key) -> anyhow::Result<Observed> {
        let read = control.get::<LivePod>(&PODS, key).await;
        Ok(self.observe_live(read.unless_absent().context("cannot read the pod")?))
    }

    fn volume(&self, pod: &Key, name: Box<str>, template: Option<ClaimTemplate>) -> Volume {
        let claim = self.persistent_volume_claims.get(&claim_key(pod, &name));
        Volume { name, claim, template }
    }

    /// The pods that have not started and have a volume for a claim of this name.
    pub(crate) fn pods_for(&self, claim: &Key) -> Vec<Arc<Pod>> {
        self.pods.by_index(self.pods_by_claim, &claim.into())
    }
}
