//! Executes a plan: at most one patch of the finalizers, and then one apply of the condition Ready.
//!
//! Left out: waiting, which is the queue's.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;
use shared::api::condition::TRUE;
use shared::api::object::{Key, Kind, Uid};
use shared::runtime::control::{Control, Patch};
use shared::runtime::events::{EventType, Recorder};

use crate::objects::{FINALIZER, SERVICE_CIDRS};
use crate::observe::Observed;
use crate::plan::Plan;
use crate::status::ReadyCondition;

/// The owner of the condition; upstream's, so that after a handover in either direction there is one.
const FIELD_MANAGER: &str = "service-cidr-controller";
const NOT_READY_EVENT: &str = "KubernetesServiceCIDRError";
const NOT_READY_MESSAGE: &str = "The ServiceCIDR Status can not be set to Ready=True";

/// Writes ServiceCIDRs.
pub(crate) struct Writer {
    pub(crate) control: Control,
    pub(crate) recorder: Recorder,
}

/// The result of executing a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The fact that the status is to tell; none if it stays as it is.
    pub standing: Option<Standing>,
    /// When to look again; none if only a change can make a difference.
    pub next: Option<Duration>,
    /// The error of the patch, if it failed.
    pub error: Option<anyhow::Error>,
}

/// Whether addresses are allocated from a ServiceCIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They are.
    Ready,
    /// It is being deleted, and addresses need it.
    Terminating,
}

impl Writer {
    /// Executes the plan.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { service_cidr, others: _, addresses: _ } = observed;
        let key = &service_cidr.metadata.key;
        match plan {
            Plan::Serve { lacks_finalizer: false, uid: _ } => Outcome::of(Standing::Ready),
            Plan::Serve { lacks_finalizer: true, uid } => match self.add_finalizer(key, uid).await {
                Ok(true) => Outcome::of(Standing::Ready),
                Ok(false) => Outcome::default(),
                Err(error) => Outcome { error: Some(error), ..Outcome::default() },
            },
            Plan::Refuse { addresses: _, first: _ } => Outcome::of(Standing::Terminating),
            Plan::Wait { left, until: _ } => Outcome { next: Some(left), ..Outcome::default() },
            Plan::LetGo { uid, addresses: _ } => {
                Outcome { error: self.remove_finalizer(key, uid).await.err(), ..Outcome::default() }
            }
            Plan::Nothing => Outcome::default(),
        }
    }

    /// Gives whether the ServiceCIDR is still there.
    ///
    /// Upstream: `addServiceCIDRFinalizerIfNeeded`.
    async fn add_finalizer(&self, key: &Key, uid: Uid) -> anyhow::Result<bool> {
        let patch = Patch::strategic(&json!({ "metadata": { "finalizers": [FINALIZER] } }));
        let is_there = self.patch(key, uid, patch).await.context("add the finalizer")?;
        if is_there {
            tracing::info!(service_cidr = %key, "added the finalizer");
        }
        Ok(is_there)
    }

    /// Upstream: `removeServiceCIDRFinalizerIfNeeded`.
    async fn remove_finalizer(&self, key: &Key, uid: Uid) -> anyhow::Result<()> {
        let patch = Patch::strategic(&json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": [FINALIZER] } }));
        if self.patch(key, uid, patch).await.context("remove the finalizer")? {
            tracing::info!(service_cidr = %key, "let the ServiceCIDR go");
        }
        Ok(())
    }

    /// Applies the condition. A person is told where the ServiceCIDR cannot be made ready.
    pub(crate) async fn write_condition(&self, observed: &Observed, condition: ReadyCondition) -> anyhow::Result<()> {
        let metadata = &observed.service_cidr.metadata;
        let key = &metadata.key;
        let patch = Patch::apply(FIELD_MANAGER, &Configuration::new(key.name(), condition)).on_status();
        match self.patch(key, metadata.uid, patch).await {
            Ok(true) => tracing::info!(service_cidr = %key, status = condition.status, "applied the condition Ready"),
            Ok(false) => {}
            Err(error) => {
                if condition.status == TRUE {
                    let about = observed.service_cidr.reference();
                    self.recorder.event(&about, EventType::Warning, NOT_READY_EVENT, NOT_READY_MESSAGE.to_owned());
                }
                return Err(error).context("apply the condition Ready");
            }
        }
        Ok(())
    }

    /// Gives whether the ServiceCIDR is still there.
    async fn patch(&self, key: &Key, uid: Uid, patch: Patch) -> anyhow::Result<bool> {
        match self.control.for_key(key, uid).patch(&SERVICE_CIDRS, key, uid, patch).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Outcome {
    fn of(standing: Standing) -> Self {
        Self { standing: Some(standing), ..Self::default() }
    }
}

/// The fields that are applied: one condition of the status.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration<'a> {
    api_version: &'static str,
    kind: &'static str,
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
    /// A ServiceCIDR of this name with this condition.
    pub fn new(name: &'a str, condition: ReadyCondition) -> Self {
        let status = Status { conditions: [condition] };
        Self { api_version: "networking.k8s.io/v1", kind: "ServiceCIDR", metadata: Name { name }, status }
    }
}
