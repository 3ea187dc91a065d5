//! Executes a plan: at most one patch of the finalizers, and then one apply of the condition Ready.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;
use shared::api::condition::TRUE;
use shared::api::object::{Key, Kind, Uid};
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::Patch;
use shared::working::events::PlannedEvent;

use crate::objects::{FINALIZER, ReadyCondition, SERVICE_CIDRS};
use crate::observe::Observed;
use crate::plan::Plan;

/// The field manager of the condition. It is upstream's, so the condition keeps one owner after a handover.
const FIELD_MANAGER: &str = "service-cidr-controller";
const NOT_READY_EVENT: &str = "KubernetesServiceCIDRError";
const NOT_READY_MESSAGE: &str = "The ServiceCIDR Status can not be set to Ready=True";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// The state to write to the status; none if the status stays as it is.
    pub readiness: Option<Readiness>,
    /// When to sync again; none if only a change can make a difference.
    pub next: Option<Duration>,
}

/// The state of a ServiceCIDR as its condition `Ready` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    Terminating,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Outcome> {
        let Observed { service_cidr, others: _, addresses: _ } = observed;
        let key = &service_cidr.metadata.key;
        Ok(match plan {
            Plan::Serve { lacks_finalizer: false, uid: _ } => Outcome::of(Readiness::Ready),
            Plan::Serve { lacks_finalizer: true, uid } => {
                let readiness = self.add_finalizer(key, uid).await?.then_some(Readiness::Ready);
                Outcome { readiness, ..Outcome::default() }
            }
            Plan::Refuse { addresses: _, first: _ } => Outcome::of(Readiness::Terminating),
            Plan::Wait { left, until: _ } => Outcome { next: Some(left), ..Outcome::default() },
            Plan::LetGo { uid, addresses: _ } => {
                self.remove_finalizer(key, uid).await?;
                Outcome::default()
            }
            Plan::Nothing => Outcome::default(),
        })
    }

    /// Returns whether the ServiceCIDR still exists.
    ///
    /// Upstream: `addServiceCIDRFinalizerIfNeeded`.
    async fn add_finalizer(&self, key: &Key, uid: Uid) -> anyhow::Result<bool> {
        let patch = Patch::strategic(&json!({ "metadata": { "finalizers": [FINALIZER] } }));
        let exists = self.patch(key, uid, patch).await.context("cannot add the finalizer")?;
        if exists {
            tracing::info!(service_cidr = %key, "added finalizer");
        }
        Ok(exists)
    }

    /// Upstream: `removeServiceCIDRFinalizerIfNeeded`.
    async fn remove_finalizer(&self, key: &Key, uid: Uid) -> anyhow::Result<()> {
        let patch = Patch::strategic(&json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": [FINALIZER] } }));
        if self.patch(key, uid, patch).await.context("cannot remove the finalizer")? {
            tracing::info!(service_cidr = %key, "removed finalizer");
        }
        Ok(())
    }

    /// Applies the condition. Posts an event if this fails for `Ready=True`.
    pub(crate) async fn write_condition(&self, observed: &Observed, condition: ReadyCondition) -> anyhow::Result<()> {
        let metadata = &observed.service_cidr.metadata;
        let key = &metadata.key;
        let patch = Patch::apply(FIELD_MANAGER, &Configuration::new(key.name(), condition)).on_status();
        match self.patch(key, metadata.uid, patch).await {
            Ok(true) => tracing::info!(service_cidr = %key, status = condition.status, "applied condition Ready"),
            Ok(false) => {}
            Err(error) => {
                if condition.status == TRUE {
                    let (about, message) = (observed.service_cidr.reference(), NOT_READY_MESSAGE.to_owned());
                    self.ctx.event(PlannedEvent::warning(about, NOT_READY_EVENT, message));
                }
                return Err(error).context("cannot apply the condition Ready");
            }
        }
        Ok(())
    }

    /// Returns whether the ServiceCIDR still exists.
    async fn patch(&self, key: &Key, uid: Uid, patch: Patch) -> anyhow::Result<bool> {
        let patched = self.ctx.for_key(key, uid).patch(&SERVICE_CIDRS, key, uid, patch).await;
        Ok(patched.unless_gone()?.is_some())
    }
}

impl Outcome {
    fn of(readiness: Readiness) -> Self {
        Self { readiness: Some(readiness), ..Self::default() }
    }
}

/// The applied fields: one condition of the status.
#[derive(Debug, Serialize)]
pub struct Configuration<'a> {
    metadata: Name<'a>,
    status: Status,
}

#[derive(Debug, Serialize)]
struct Name<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
struct Status {
    conditions: [ReadyCondition; 1],
}

impl<'a> Configuration<'a> {
    pub fn new(name: &'a str, condition: ReadyCondition) -> Self {
        let status = Status { conditions: [condition] };
        Self { metadata: Name { name }, status }
    }
}
