//! Reads one PodGroup and its pods that have not ended: first from the cache, and live if the cache has none.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::api::pod::LIVE;
use shared::api::resource::PODS;
use shared::controllers::protection::observe::{self, UserCaches};
use shared::controllers::protection::users::UsingPods;
use shared::following::answers::Answers;
use shared::following::cache::{Cache, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ApiError;
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::PodGroup;
use crate::objects::pod::Pod;

pub type Observed = observe::Observed<PodGroup, UsingPods>;

pub struct Caches {
    pub pod_groups: Arc<Cache<PodGroup>>,
    /// The pods that have not ended, of the namespaces in which a group is being deleted.
    pub pods: Arc<Cache<Pod>>,
    pods_by_group: IndexId,
    /// The pods of each group, by namespace.
    answers: Answers<Text, Arc<BTreeMap<Text, UsingPods>>>,
}

pub struct Informers {
    pub(crate) pod_groups: Informer<PodGroup>,
    pub(crate) pods: Informer<Pod>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let pod_groups = InformerBuilder::new().metadata_only().build();
        let mut pods = InformerBuilder::<Pod>::new().fields(LIVE);
        let pods_by_group =
            pods.index(|pod, emit| pod.group_key().iter().for_each(|group| emit(IndexValue::from(group))));
        let pods = pods.build();
        let caches =
            Self { pod_groups: pod_groups.cache(), pods: pods.cache(), pods_by_group, answers: Answers::default() };
        (caches, Informers { pod_groups, pods })
    }
}

impl UserCaches for Caches {
    type Object = PodGroup;
    type Users = UsingPods;

    /// Upstream: `hasActivePods`, `pkg/controller/scheduling/podgroupprotection/podgroup_protection_controller.go`.
    fn observe(&self, key: &Key) -> Option<Observed> {
        let group = self.pod_groups.get(key)?;
        let mut cached = UsingPods::default();
        if group.metadata.is_being_deleted() {
            let pods = self.pods.by_index(self.pods_by_group, &key.into());
            cached = pods.iter().map(|pod| pod.metadata.name()).collect();
        }
        Some(Observed { object: group, cached, live: None })
    }

    /// Groups of one namespace that are deleted together share one list: it is newer than the deletion of each.
    async fn live_users(&self, control: &Control, group: &PodGroup) -> anyhow::Result<UsingPods> {
        let (metadata, seen) = (&group.metadata, self.pod_groups.progress());
        let namespace = Text::new(metadata.namespace());
        let list = pods_by_group(control, &namespace);
        let pods = self.answers.ask(&namespace, metadata.resource_version, seen, list).await;
        let pods = pods.context("cannot list the pods of its namespace")?;
        Ok(pods.get(metadata.name()).cloned().unwrap_or_default())
    }
}

async fn pods_by_group(control: &Control, namespace: &str) -> Result<Arc<BTreeMap<Text, UsingPods>>, ApiError> {
    let mut pods = BTreeMap::<Text, UsingPods>::new();
    let each = |Pod { metadata, group }: Pod| {
        if let Some(group) = group {
            pods.entry(group).or_default().pods.push(metadata.name().to_owned());
        }
    };
    let selection = Selection { field_selector: LIVE, ..Selection::default() };
    control.list_each(&PODS, namespace, selection, Accept::Object, each).await?;
    Ok(Arc::new(pods))
}
