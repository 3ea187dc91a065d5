//! Reads one claim and the pods that use it: first from the cache, and live if no pod in the cache does.

use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::controllers::protection::observe::{self, UserCaches};
use shared::controllers::protection::users::UsingPods;
use shared::following::answers::Answers;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ApiError;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::PersistentVolumeClaim;
use crate::objects::pod::Pod;

pub type Observed = observe::Observed<PersistentVolumeClaim, UsingPods>;

pub struct Caches {
    pub persistent_volume_claims: Arc<Cache<PersistentVolumeClaim>>,
    /// The pods of the namespaces in which a claim is being deleted.
    pub pods: Arc<Cache<Pod>>,
    pods_by_claim: IndexId,
    /// The pods with claims, by namespace.
    answers: Answers<Text, Arc<[Arc<Pod>]>>,
}

pub struct Informers {
    pub(crate) persistent_volume_claims: Informer<PersistentVolumeClaim>,
    pub(crate) pods: Informer<Pod>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let persistent_volume_claims = InformerBuilder::new().metadata_only().build();
        let mut pods = InformerBuilder::<Pod>::new();
        let pods_by_claim = pods.index(|pod, emit| pod.claim_keys().for_each(|claim| emit(IndexValue::from(&claim))));
        let pods = pods.build();
        let caches = Self {
            persistent_volume_claims: persistent_volume_claims.cache(),
            pods: pods.cache(),
            pods_by_claim,
            answers: Answers::default(),
        };
        (caches, Informers { persistent_volume_claims, pods })
    }
}

impl UserCaches for Caches {
    type Object = PersistentVolumeClaim;
    type Users = UsingPods;

    fn observe(&self, key: &Key) -> Option<Observed> {
        let claim = self.persistent_volume_claims.get(key)?;
        let mut cached = UsingPods::default();
        if claim.metadata.is_being_deleted() {
            cached = using(&claim, &self.pods.by_index(self.pods_by_claim, &key.into()));
        }
        Some(Observed { object: claim, cached, live: None })
    }

    /// Claims of one namespace that are deleted together share one list: it is newer than the deletion of each.
    ///
    /// Upstream: `askAPIServer` and `LazyLivePodList`.
    async fn live_users(&self, control: &Control, claim: &PersistentVolumeClaim) -> anyhow::Result<UsingPods> {
        let (metadata, seen) = (&claim.metadata, self.persistent_volume_claims.progress());
        let namespace = Text::new(metadata.namespace());
        let list = pods_with_claims(control, &namespace);
        let pods = self.answers.ask(&namespace, metadata.resource_version, seen, list).await;
        let pods = pods.context("cannot list the pods of its namespace")?;
        Ok(using(claim, &pods))
    }
}

/// Those of the pods that use the claim.
pub fn using(claim: &PersistentVolumeClaim, pods: &[Arc<Pod>]) -> UsingPods {
    pods.iter().filter(|pod| pod.uses(claim)).map(|pod| pod.metadata.name()).collect()
}

async fn pods_with_claims(control: &Control, namespace: &str) -> Result<Arc<[Arc<Pod>]>, ApiError> {
    let mut pods = Vec::new();
    let each = |pod: Pod| {
        if pod.claim_keys().next().is_some() {
            pods.push(Arc::new(pod));
        }
    };
    control.list_each(&PODS, namespace, Selection::default(), Accept::Object, each).await?;
    Ok(pods.into())
}
