//! Reads a node with the memory of it, and asks the provider about the node as the apiserver has it.
//!
//! A provider that has lost its view of the cluster, by another account or another region, knows no node at all. Before a
//! node is deleted the provider must therefore know another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use cloud::{Client, CloudError};
use jiff::Timestamp;
use serde_json::value::RawValue;
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::api_error::{ApiError, ResultExt};
use shared::transport::clock::instant;
use shared::working::control::Control;

use crate::memory::Absences;
use crate::objects::{LiveNode, Node};

/// The provider is asked about at most this many other nodes.
const OTHERS_MAX: usize = 3;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// As the cache has it, or as it was when the provider was asked.
    pub node: Arc<Node>,
    /// Since when the provider has said each time that it does not know the node, by the wall clock of the observation.
    pub absent_since: Option<Timestamp>,
    pub answer: Answer,
    pub others: Others,
}

/// What the provider says about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was not asked.
    None,
    /// It was not asked, because the node is ready by now.
    Ready,
    /// It was not asked, because there is no such node any more.
    Gone,
    Exists {
        is_shut_down: bool,
    },
    Absent,
    /// It wants to be asked again after this time.
    Later {
        after: Duration,
        message: String,
    },
    /// It does not know instances.
    NotSupported,
}

/// What the provider says about the other nodes of its cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    NotAsked,
    /// There are none.
    None,
    /// It knows one of them.
    Known,
    Unknown {
        /// How many it does not know, of those that it was asked about.
        nodes: usize,
    },
}

pub struct Caches {
    pub nodes: Arc<Cache<Node>>,
    pub absences: Absences,
}

pub(crate) struct Informers {
    pub(crate) nodes: Informer<Node>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let nodes = InformerBuilder::<Node>::new().build();
        (Self { nodes: nodes.cache(), absences: Absences::default() }, Informers { nodes })
    }

    pub fn observe(&self, key: &Key, now: Timestamp) -> Option<Observed> {
        let node = self.nodes.get(key)?;
        let absent_since = self.absences.since(key, node.metadata.uid, (now, instant()));
        Some(Observed { node, absent_since, answer: Answer::None, others: Others::NotAsked })
    }

    /// The other nodes that the provider should know, in the order in which it is asked about them: a node that is ready
    /// runs somewhere. Those that it did not know a moment ago are only counted.
    pub fn others(&self, node: &Node) -> (Vec<Arc<Node>>, usize) {
        let is_other = |other: &Arc<Node>| other.metadata.uid != node.metadata.uid && node.may_share_cloud(other);
        let others = self.nodes.all().into_iter().filter(is_other);
        let is_absent = |other: &Arc<Node>| self.absences.has(&other.metadata.key, other.metadata.uid);
        let (absent, mut others): (Vec<_>, Vec<_>) = others.partition(is_absent);
        others.sort_by(|a, b| (!a.is_ready(), &a.metadata.key).cmp(&(!b.is_ready(), &b.metadata.key)));
        (others, absent.len())
    }
}

/// The live reads before a decision about a node.
pub(crate) struct Reader {
    caches: Arc<Caches>,
    control: Control,
    cloud: Client,
    is_unsupported: AtomicBool,
}

/// Why there is no answer.
enum Failure {
    Api(ApiError),
    Cloud(CloudError),
}

impl Reader {
    pub(crate) fn new(caches: Arc<Caches>, control: Control, cloud: Client) -> Self {
        Self { caches, control, cloud, is_unsupported: AtomicBool::new(false) }
    }

    /// Asks about the node first, then about others, and if one of them is known again about the node.
    pub(crate) async fn ask(&self, observed: Observed) -> anyhow::Result<Observed> {
        let asked = match observed.answer {
            Answer::None => self.ask_about_node(&observed).await,
            Answer::Ready
            | Answer::Gone
            | Answer::Exists { .. }
            | Answer::Absent
            | Answer::Later { .. }
            | Answer::NotSupported => self.ask_about_others(&observed).await,
        };
        let asked = asked.or_else(|failure| {
            let answer = match failure {
                Failure::Cloud(CloudError::RetryAfter { after, message }) => Answer::Later { after, message },
                Failure::Cloud(CloudError::NotSupported | CloudError::ImplementedElsewhere) => Answer::NotSupported,
                Failure::Cloud(error) => return Err(error).context("cannot ask the cloud provider"),
                Failure::Api(error) => return Err(error).context("cannot read the node"),
            };
            Ok(Observed { answer, ..observed })
        })?;
        let is_unsupported = asked.answer == Answer::NotSupported;
        if is_unsupported && !self.is_unsupported.swap(true, Ordering::Relaxed) {
            tracing::warn!("the cloud provider does not support instances; asking again each minute");
        }
        Ok(asked)
    }

    /// Upstream: `ensureNodeExistsByProviderID` and `shutdownInCloudProvider`,
    /// `staging/src/k8s.io/cloud-provider/controllers/nodelifecycle/node_lifecycle_controller.go`.
    async fn ask_about_node(&self, observed: &Observed) -> Result<Observed, Failure> {
        let uid = observed.node.metadata.uid;
        let live = self.read(&observed.node.metadata.key).await?.filter(|live| live.node.metadata.uid == uid);
        let Some(LiveNode { node, whole }) = live else {
            return Ok(Observed { answer: Answer::Gone, ..observed.clone() });
        };
        let answer = if node.is_ready() {
            Answer::Ready
        } else if self.exists(&whole).await? {
            Answer::Exists { is_shut_down: self.is_shut_down(&whole).await? }
        } else {
            Answer::Absent
        };
        Ok(Observed { node: Arc::new(node), answer, ..observed.clone() })
    }

    async fn ask_about_others(&self, observed: &Observed) -> Result<Observed, Failure> {
        let found = |others| Ok(Observed { others, ..observed.clone() });
        let (others, mut unknown) = self.caches.others(&observed.node);
        if others.is_empty() && unknown == 0 {
            return found(Others::None);
        }
        for other in others.iter().take(OTHERS_MAX) {
            let Some(live) = self.read(&other.metadata.key).await? else { continue };
            if self.exists(&live.whole).await? {
                // The provider may have come to know them all again since it was asked about the node.
                let observed = Observed { others: Others::Known, ..observed.clone() };
                return self.ask_about_node(&observed).await;
            }
            unknown += 1;
        }
        found(Others::Unknown { nodes: unknown })
    }

    /// The provider may also say in words that there is no such instance.
    async fn exists(&self, node: &RawValue) -> Result<bool, Failure> {
        match self.cloud.instance_exists(node).await {
            Err(CloudError::InstanceNotFound) => Ok(false),
            answer => answer.map_err(Failure::Cloud),
        }
    }

    /// An instance that has just gone is not shut down, and neither is one of a cloud that shuts none down.
    async fn is_shut_down(&self, node: &RawValue) -> Result<bool, Failure> {
        match self.cloud.instance_is_shutdown(node).await {
            Err(CloudError::InstanceNotFound | CloudError::NotSupported) => Ok(false),
            answer => answer.map_err(Failure::Cloud),
        }
    }

    async fn read(&self, key: &Key) -> Result<Option<LiveNode>, Failure> {
        self.control.get(&NODES, key).await.unless_absent().map_err(Failure::Api)
    }
}
