//! Executes the steps for a pod or a PodGroup: creates claims, records them in its status, and reserves claims for it.

use std::fmt::Display;

use anyhow::{Context, anyhow};
use shared::api::object::ObjectReference;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::Patch;
use shared::working::events::PlannedEvent;

use crate::metrics::ClaimMetrics;
use crate::objects::{FAILED_RESOURCE_CLAIM_CREATION, FIELD_MANAGER, RESOURCE_CLAIMS};
use crate::plan::creation::NewClaim;
use crate::plan::users::{Record, RecordedClaim, Reservation, Steps, UserPlan};
use crate::status::{reserved, resource_claim_statuses};

pub(crate) struct UserWriter {
    pub(crate) ctx: ControllerContext,
    pub(crate) metrics: ClaimMetrics,
    /// The word for an entry in events.
    pub(crate) entry: &'static str,
}

impl UserWriter {
    pub(crate) async fn apply(&self, plan: UserPlan) -> anyhow::Result<()> {
        let UserPlan::Act(steps) = plan else { return Ok(()) };
        let Steps { create, failure, record, reserve, user, reason: _ } = *steps;
        let mut created = Vec::new();
        for new in create {
            created.push(self.create(&user, new).await?);
        }
        if let Some((entry, failure)) = failure {
            return Err(anyhow!(self.report(&user, &entry, failure)));
        }
        if !record.is_empty() {
            self.record(&user, record, &created).await?;
        }
        for reservation in reserve {
            self.reserve(&user, reservation).await?;
        }
        Ok(())
    }

    /// Returns the name that the server chose.
    async fn create(&self, user: &ObjectReference, new: NewClaim) -> anyhow::Result<Box<str>> {
        let NewClaim { entry, body, has_admin_access } = new;
        let control = self.ctx.for_key(&user.key, user.uid);
        let created = control.create(&RESOURCE_CLAIMS, user.key.namespace(), body).await;
        self.metrics.observe_create(created.is_ok(), has_admin_access);
        match created {
            Ok(written) => {
                let (kind, claim) = (&user.resource.kind, written.metadata.name());
                tracing::info!(%kind, user = %user.key, %entry, claim, "created claim from template");
                Ok(claim.into())
            }
            Err(error) => {
                // Upstream prints the name here, which is empty before the server chooses one.
                let message = self.report(user, &entry, format_args!("create ResourceClaim : {error}"));
                Err(error).context(message)
            }
        }
    }

    async fn record(&self, user: &ObjectReference, record: Vec<Record>, created: &[Box<str>]) -> anyhow::Result<()> {
        let claims = record.into_iter().filter_map(|Record { entry, claim }| match claim {
            RecordedClaim::Known(name) => Some((entry, name)),
            RecordedClaim::Created(place) => Some((entry, created.get(place)?.clone())),
        });
        let claims: Vec<(Box<str>, Box<str>)> = claims.collect();
        let patch = Patch::apply(FIELD_MANAGER, &resource_claim_statuses(&user.key, &claims)).on_status();
        let control = self.ctx.for_key(&user.key, user.uid);
        let patched = control.patch(&user.resource, &user.key, user.uid, patch).await.unless_absent();
        if patched.context("cannot record its claims")?.is_some() {
            tracing::info!(kind = %user.resource.kind, user = %user.key, claims = claims.len(), "recorded claims");
        }
        Ok(())
    }

    async fn reserve(&self, user: &ObjectReference, reservation: Reservation) -> anyhow::Result<()> {
        let Reservation { claim, consumer, preconditions } = reservation;
        let patch = Patch::strategic(&reserved(&consumer)).on_status();
        let control = self.ctx.for_key(&user.key, user.uid);
        let patched = control.patch(&RESOURCE_CLAIMS, &claim, preconditions, patch).await.unless_absent();
        if patched.with_context(|| format!("cannot reserve claim {claim}"))?.is_some() {
            tracing::info!(%claim, %consumer, "reserved claim");
        }
        Ok(())
    }

    /// Posts the event, and returns its message.
    fn report(&self, user: &ObjectReference, entry: &str, failure: impl Display) -> String {
        let message = format!("{} {entry}: {failure}", self.entry);
        self.ctx.event(PlannedEvent::warning(user.clone(), FAILED_RESOURCE_CLAIM_CREATION, message.clone()));
        message
    }
}
