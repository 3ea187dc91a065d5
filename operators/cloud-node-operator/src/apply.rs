//! Executes a plan: the writes of a node, and the event that it is initialized.

use anyhow::{Context, bail};
use shared::api::object::{Key, Kind, Uid};
use shared::api::resource::NODES;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{Patch, Preconditions, Written};
use shared::working::events::PlannedEvent;

use crate::metrics::NodeMetrics;
use crate::objects::Node;
use crate::plan::addresses::{AddressChange, AddressPlan};
use crate::plan::{Initialization, Label, Plan, Step};
use crate::status::{addresses_patch, initialization_patch, labels_patch};

const SYNCED: &str = "Synced";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) metrics: NodeMetrics,
}

impl Writer {
    pub(crate) async fn apply(&self, node: &Node, plan: Plan) -> anyhow::Result<()> {
        let Plan { step, again: _, reason } = plan;
        match step {
            Step::Keep => Ok(()),
            Step::Fail => bail!("cannot initialize the node: {reason}"),
            Step::Label(labels) => self.label(node, &labels).await,
            Step::Initialize(initialization) => self.initialize(&initialization).await,
        }
    }

    async fn label(&self, node: &Node, labels: &[Label]) -> anyhow::Result<()> {
        let (key, uid) = (&node.metadata.key, node.metadata.uid);
        let patched = self.patch((key, uid), uid.into(), Patch::merge(&labels_patch(labels))).await;
        if patched.context("cannot change labels")?.is_some() {
            tracing::info!(node = %key, "changed labels");
        }
        Ok(())
    }

    /// The addresses come first: a process that ends in between finds the node still to be initialized.
    ///
    /// Upstream: `syncNode`, `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`.
    async fn initialize(&self, initialization: &Initialization) -> anyhow::Result<()> {
        let Initialization { node, addresses, provider_id: _, labels: _ } = initialization;
        let of = (&node.metadata.key, node.metadata.uid);
        let mut state = Preconditions::of(&node.metadata);
        if let Some(addresses) = addresses {
            let patch = Patch::merge(&addresses_patch(addresses)).on_status();
            let patched = self.patch(of, state, patch).await.context("cannot change addresses")?;
            let Some(Written { metadata }) = patched else { return Ok(()) };
            state = Preconditions::of(&metadata);
        }
        let patch = Patch::merge(&initialization_patch(initialization));
        if self.patch(of, state, patch).await.context("cannot initialize the node")?.is_none() {
            return Ok(());
        }
        tracing::info!(node = %node.metadata.key, "initialized node");
        self.metrics.initialized(node.metadata.creation, self.ctx.now());
        self.ctx.event(PlannedEvent::normal(node.reference(), SYNCED, "Node synced successfully".to_owned()));
        Ok(())
    }

    pub(crate) async fn apply_addresses(&self, plan: AddressPlan) -> anyhow::Result<()> {
        let AddressPlan { change, again: _, reason: _ } = plan;
        let Some(AddressChange { node, addresses }) = change else { return Ok(()) };
        let of = (&node.metadata.key, node.metadata.uid);
        let patch = Patch::merge(&addresses_patch(&addresses)).on_status();
        let patched = self.patch(of, Preconditions::of(&node.metadata), patch).await;
        if patched.context("cannot change addresses")?.is_some() {
            tracing::info!(node = %node.metadata.key, "changed addresses");
        }
        Ok(())
    }

    /// None if the node is gone.
    async fn patch(
        &self,
        (key, uid): (&Key, Uid),
        state: Preconditions,
        patch: Patch,
    ) -> Result<Option<Written>, ApiError> {
        self.ctx.for_key(key, uid).patch(&NODES, key, state, patch).await.unless_gone()
    }
}
