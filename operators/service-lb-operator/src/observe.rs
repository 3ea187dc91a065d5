//! Reads a Service, the Nodes and what the provider was told; a question that these leave open is asked live.

pub mod pools;

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::Context;
use serde_json::value::RawValue;
use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::balancers::Balancers;
use crate::memory::{Capability, Memory, Told};
use crate::objects::service::LiveService;
use crate::objects::{Node, Nodes, SERVICES, Service};

#[derive(Clone, Debug)]
pub struct Observed {
    /// None if the cache does not have it.
    pub service: Option<Arc<Service>>,
    pub told: Option<Told>,
    pub nodes: Nodes,
    pub capability: Capability,
    /// Whether the provider has a load balancer for the Service.
    pub balancer: Answer,
    /// Whether the apiserver still has the object that the provider was told about.
    pub object: Answer,
}

/// The answer to a question that the caches leave open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    #[default]
    Unasked,
    Exists,
    Absent,
}

impl Answer {
    pub(crate) fn of(exists: bool) -> Self {
        if exists { Self::Exists } else { Self::Absent }
    }
}

pub struct Caches {
    pub services: Arc<Cache<Service>>,
    /// Followed while a Service wants a load balancer.
    pub nodes: Arc<Cache<Node>>,
    pub memory: Memory,
}

pub struct Informers {
    pub(crate) services: Informer<Service>,
    pub(crate) nodes: Informer<Node>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let (services, nodes) = (InformerBuilder::new().build(), InformerBuilder::new().build());
        let caches = Self { services: services.cache(), nodes: nodes.cache(), memory: Memory::default() };
        (caches, Informers { services, nodes })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let (service, told) = (self.services.get(key), self.memory.told(key));
        if service.is_none() && told.is_none() {
            return None;
        }
        let has_balancer = service.as_ref().is_some_and(|service| service.wants_load_balancer());
        let nodes = Nodes::of(if has_balancer { self.nodes.all() } else { Vec::new() });
        let capability = self.memory.capability();
        Some(Observed { service, told, nodes, capability, balancer: Answer::Unasked, object: Answer::Unasked })
    }
}

/// Asks what a plan needs to know.
pub(crate) struct Reader {
    pub(crate) caches: Arc<Caches>,
    pub(crate) control: Control,
    pub(crate) balancers: Balancers,
}

impl Reader {
    /// First what the provider can do; then whether an object that the cache lost is gone, or whether there is a load
    /// balancer.
    pub(crate) async fn ask(&self, mut observed: Observed) -> anyhow::Result<Observed> {
        let Observed { service, told, capability, balancer, object, nodes: _ } = &mut observed;
        if *capability == Capability::Unknown {
            *capability = self.ask_for_capability().await?;
        } else if let Some(service) = service {
            let whole = self.whole(service).await?;
            let found = self.balancers.get(&whole).await;
            let found = found.context("failed to check if load balancer exists before cleanup")?;
            *balancer = Answer::of(found.is_some());
        } else if let Some(told) = told {
            let live = self.live(&told.service.metadata.key).await?;
            *object = Answer::of(live.is_some_and(|live| live.metadata.uid == told.service.metadata.uid));
        }
        Ok(observed)
    }

    async fn ask_for_capability(&self) -> anyhow::Result<Capability> {
        let info = self.balancers.info().await.context("cannot ask the cloud provider what it can do")?;
        let capability = if info.load_balancers { Capability::Has } else { Capability::Lacks(info.name) };
        if self.caches.memory.learn(&capability)
            && let Capability::Lacks(provider) = &capability
        {
            tracing::warn!(provider, "the cloud provider has no load balancers; asking again each minute");
        }
        Ok(capability)
    }

    /// The JSON of a Service for the provider. Of one that is gone and was too large for the cache, the provider gets what
    /// identifies it.
    pub(crate) async fn whole<'a>(&self, service: &'a Service) -> anyhow::Result<Cow<'a, RawValue>> {
        if let Some(whole) = service.whole() {
            return Ok(Cow::Borrowed(whole));
        }
        let live = self.live(&service.metadata.key).await?;
        let is_same = |live: &LiveService| live.metadata.uid == service.metadata.uid;
        Ok(Cow::Owned(live.filter(is_same).map_or_else(|| service.identity(), |live| live.whole)))
    }

    async fn live(&self, key: &Key) -> anyhow::Result<Option<LiveService>> {
        self.control.get::<LiveService>(&SERVICES, key).await.unless_absent().context("cannot read the Service")
    }
}
