//! Executes a plan: creates claims, up to the first failure, which becomes an event of the pod.

use std::fmt::Display;

use anyhow::{Context, anyhow};
use shared::api::object::{Key, ObjectReference};
use shared::api::resource::PERSISTENT_VOLUME_CLAIMS;
use shared::transport::api_error::ApiError;
use shared::working::context::ControllerContext;
use shared::working::events::PlannedEvent;

use crate::metrics::ClaimMetrics;
use crate::objects::{FAILED_BINDING, PersistentVolumeClaim};
use crate::plan::{Clash, NewClaim, Plan};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) metrics: ClaimMetrics,
}

impl Writer {
    pub(crate) async fn apply(&self, plan: Plan) -> anyhow::Result<()> {
        let Plan::Claims { create, clash, pod } = plan else { return Ok(()) };
        for new in create {
            self.create(&pod, new).await?;
        }
        clash.map_or(Ok(()), |clash| Err(self.refuse(&pod, &clash)))
    }

    async fn create(&self, pod: &ObjectReference, new: NewClaim) -> anyhow::Result<()> {
        let NewClaim { volume, claim, body } = new;
        let control = self.ctx.for_key(&pod.key, pod.uid);
        let created = control.create(&PERSISTENT_VOLUME_CLAIMS, claim.namespace(), body).await;
        self.metrics.observe(created.is_ok());
        match created {
            Ok(_) => {
                tracing::info!(pod = %pod.key, %volume, %claim, "created claim of an ephemeral volume");
                Ok(())
            }
            Err(error) if error.is_already_exists() => self.check_existing(pod, volume, claim).await,
            Err(error) => {
                self.report(pod, &volume, format_args!("create PVC {}: {error}", claim.name()));
                Err(error).with_context(|| format!("cannot create claim {claim}"))
            }
        }
    }

    /// Checks a claim that the cache does not show: an earlier creation whose answer was lost, or another's claim.
    async fn check_existing(&self, pod: &ObjectReference, volume: Box<str>, claim: Key) -> anyhow::Result<()> {
        let read: Result<PersistentVolumeClaim, ApiError> =
            self.ctx.control().get_metadata(&PERSISTENT_VOLUME_CLAIMS, &claim).await;
        let existing = read.with_context(|| format!("cannot read the existing claim {claim}"))?;
        if existing.metadata.is_controlled_by(pod.uid) {
            return Ok(());
        }
        Err(self.refuse(pod, &Clash { volume, claim, pod: pod.key.clone() }))
    }

    fn refuse(&self, pod: &ObjectReference, clash: &Clash) -> anyhow::Error {
        self.report(pod, &clash.volume, clash);
        anyhow!("ephemeral volume {}: {clash}", clash.volume)
    }

    fn report(&self, pod: &ObjectReference, volume: &str, failure: impl Display) {
        let message = format!("ephemeral volume {volume}: {failure}");
        self.ctx.event(PlannedEvent::warning(pod.clone(), FAILED_BINDING, message));
    }
}
