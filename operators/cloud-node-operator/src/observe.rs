//! Reads a node, and asks the provider about the node as the apiserver has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use cloud::{Client, CloudError, InstanceMetadata};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::ResultExt;
use shared::working::control::Control;

use crate::objects::{LiveNode, Node};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// As the cache has it.
    pub node: Arc<Node>,
    pub instance: Instance,
}

/// What the provider says about the instance of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Instance {
    NotAsked,
    /// There is no such node any more.
    Gone,
    Known {
        /// The node that the provider was asked about.
        node: Arc<LiveNode>,
        metadata: Arc<InstanceMetadata>,
    },
    /// The provider has nothing to say about it yet.
    Unsaid,
    NotFound,
    /// The provider wants to be asked again after this time.
    Later {
        after: Duration,
        message: String,
    },
    /// The provider does not know instances.
    NotSupported,
}

pub struct Caches {
    pub nodes: Arc<Cache<Node>>,
}

pub(crate) struct Informers {
    pub(crate) nodes: Informer<Node>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let nodes = InformerBuilder::<Node>::new().build();
        (Self { nodes: nodes.cache() }, Informers { nodes })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        self.nodes.get(key).map(|node| Observed { node, instance: Instance::NotAsked })
    }
}

/// The live reads before a decision about a node.
#[derive(Clone)]
pub(crate) struct Reader {
    control: Control,
    cloud: Client,
    is_unsupported: Arc<AtomicBool>,
}

impl Reader {
    pub(crate) fn new(control: Control, cloud: Client) -> Self {
        Self { control, cloud, is_unsupported: Arc::default() }
    }

    /// Upstream: `getInstanceMetadata`, `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`.
    pub(crate) async fn ask(&self, observed: Observed) -> anyhow::Result<Observed> {
        let (key, uid) = (&observed.node.metadata.key, observed.node.metadata.uid);
        let live = self.control.get::<LiveNode>(&NODES, key).await.unless_absent().context("cannot read the node")?;
        let Some(node) = live.filter(|live| live.metadata.uid == uid) else {
            return Ok(Observed { instance: Instance::Gone, ..observed });
        };
        let instance = match self.cloud.instance_metadata(&node.whole).await {
            Ok(Some(metadata)) => Instance::Known { node: Arc::new(node), metadata: Arc::new(metadata) },
            Ok(None) => Instance::Unsaid,
            Err(CloudError::InstanceNotFound) => Instance::NotFound,
            Err(CloudError::RetryAfter { after, message }) => Instance::Later { after, message },
            Err(CloudError::NotSupported | CloudError::ImplementedElsewhere) => Instance::NotSupported,
            Err(error @ CloudError::Failed(_)) => return Err(error).context("failed to get instance metadata"),
        };
        let is_unsupported = instance == Instance::NotSupported;
        if is_unsupported && !self.is_unsupported.swap(true, Ordering::Relaxed) {
            tracing::warn!("the cloud provider does not support instances; asking again each minute");
        }
        Ok(Observed { instance, ..observed })
    }
}
