//! Whether a node is initialized by what the cloud knows about its instance, and which of its labels are mended.
//!
//! [`addresses`] keeps the addresses of nodes that are initialized.
//!
//! Upstream: `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`.

pub mod addresses;
pub mod labels;
mod reasons;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cloud::{InstanceMetadata, NodeAddress};
use shared::api::intern::Text;
use shared::api::list::list;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{LiveNode, Node, UNINITIALIZED};
use crate::observe::{Instance, Observed};
use addresses::{matching, wanted};
use labels::{new_labels, stale_labels};
pub use reasons::{AddressReason, Question, Reason};

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub step: Step,
    /// When the provider is asked again.
    pub again: Option<Duration>,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Keep,
    /// The sync fails, and its key waits for the next try.
    Fail,
    Label(Vec<Label>),
    Initialize(Box<Initialization>),
}

/// The changes of a node that is initialized, besides its taint.
#[derive(Clone, Debug, PartialEq)]
pub struct Initialization {
    /// The state that is changed.
    pub node: Arc<LiveNode>,
    /// All of its addresses, if they change.
    pub addresses: Option<Vec<NodeAddress>>,
    pub provider_id: Option<String>,
    pub labels: Vec<Label>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The time between two looks at the addresses of a node.
    pub period: Duration,
}

/// A label and its new value.
pub type Label = (Text, Text);

pub type Next<P = Plan> = decisions::Next<Question, P>;

/// The next stage for a node.
///
/// Upstream: `syncNode`.
pub fn next(observed: &Observed, config: &Config) -> Next {
    let Observed { node, instance } = observed;
    let plan = |step, again, reason| Plan { step, again, reason };
    Next::Execute(match instance {
        Instance::NotAsked if node.is_uninitialized => {
            return Next::Ask(LiveRead { step: "ask about its instance", reason: Question::Uninitialized });
        }
        Instance::NotAsked => plan_labels(node),
        Instance::Gone => plan(Step::Keep, None, Reason::Gone),
        Instance::Known { node, metadata } => plan_known(node, metadata),
        // Upstream asks again when the node changes.
        Instance::Unsaid => plan(Step::Keep, Some(config.period), Reason::Unsaid),
        Instance::NotFound => plan(Step::Fail, None, Reason::NotFound),
        Instance::Later { after, message } => {
            plan(Step::Keep, Some(*after), Reason::Later { message: message.clone() })
        }
        Instance::NotSupported => plan(Step::Keep, Some(cloud::REST), Reason::NotSupported),
    })
}

/// Upstream: `reconcileNodeLabels`.
fn plan_labels(node: &Node) -> Plan {
    let stale = stale_labels(node);
    let (step, reason) = match stale.len() {
        0 => (Step::Keep, Reason::Initialized),
        _ => (Step::Label(stale), Reason::StaleLabels),
    };
    Plan { step, again: None, reason }
}

/// Upstream: `getNodeModifiersFromCloudProvider`.
fn plan_known(node: &Arc<LiveNode>, metadata: &InstanceMetadata) -> Plan {
    let plan = |step, reason| Plan { step, again: None, reason };
    if !node.is_uninitialized() {
        return plan(Step::Keep, Reason::Initialized);
    }
    if node.provider_id.is_empty() && metadata.provider_id.is_empty() {
        return plan(Step::Fail, Reason::NoProviderId);
    }
    let cloud = &metadata.node_addresses;
    // The addresses that the kubelet was given must be the cloud's, also where the cloud has none.
    let addresses = match matching(node, cloud).and_then(|_| wanted(node, cloud)) {
        Ok(addresses) => addresses,
        Err(error) => return plan(Step::Fail, Reason::InvalidIp { error }),
    };
    let initialization = Initialization {
        node: Arc::clone(node),
        addresses,
        provider_id: node.provider_id.is_empty().then(|| metadata.provider_id.clone()),
        labels: new_labels(node, metadata),
    };
    plan(Step::Initialize(Box::new(initialization)), Reason::Uninitialized)
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, again: _, reason } = self;
        match step {
            Step::Keep => write!(f, "keep ({reason})"),
            Step::Fail => write!(f, "wait for the next try ({reason})"),
            Step::Label(labels) => {
                write!(f, "label {} ({reason})", list(labels, |(label, value)| format!("{label}={value}")))
            }
            Step::Initialize(initialization) => write!(f, "{initialization} ({reason})"),
        }
    }
}

impl fmt::Display for Initialization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node: _, addresses, provider_id, labels } = self;
        if let Some(addresses) = addresses {
            write!(f, "set addresses {}, ", list(addresses, text))?;
        }
        if let Some(provider_id) = provider_id {
            write!(f, "set providerID {provider_id}, ")?;
        }
        if !labels.is_empty() {
            write!(f, "label {}, ", list(labels, |(label, value)| format!("{label}={value}")))?;
        }
        write!(f, "untaint {UNINITIALIZED}")
    }
}

pub(crate) fn text(NodeAddress { type_, address }: &NodeAddress) -> String {
    format!("{type_}={address}")
}
