//! Carries out what was decided, stage by stage: the claims, the revision, the pods with their volumes, the status, and
//! the end of old revisions.
//!
//! Left out: deciding anything. Failures are told by events and given back as errors; the queue tries again.

mod bodies;
mod pods;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::object::Kind;
use shared::api::owner::Claim;
use shared::api::resource::{CONTROLLER_REVISIONS, PODS};
use shared::controllers::rejections::{REJECTED_POD_BACKOFF, Rejection};
use shared::controllers::revisions::apply::{Creation, create, delete, label, renumber};
use shared::controllers::revisions::truncation::Truncation;
use shared::controllers::revisions::{ControllerRevision, DEFAULTED_LABEL};
use shared::controllers::status_writer::{NewStatus, StatusWrite, StatusWriter};
use shared::working::context::ControllerContext;
use shared::working::control::{Claimed, KeyControl, Patch, aggregate};
use shared::working::events::PlannedEvent;

use crate::objects::pod::Pod;
use crate::objects::{StatefulSet, StatefulSetStatus};
use crate::observe::Observed;
use crate::plan::Plan;
use crate::plan::reasons::LongLabel;
use crate::plan::revisions::{RevisionPlan, Revisions, Update, collision_count, revisions_with};
use crate::plan::stuck::Refused;
use pods::OfSet;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) statuses: StatusWriter,
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// How many pods were deleted because they are of an earlier revision.
    pub outdated: usize,
    /// The disruption budget that does not let a pod go yet.
    pub refused: Option<Refused>,
    pub error: Option<anyhow::Error>,
}

impl Writer {
    fn control_of<'a>(&'a self, set: &'a StatefulSet) -> KeyControl<'a> {
        self.ctx.for_key(&set.metadata.key, set.metadata.uid)
    }

    pub(crate) async fn claim_revisions(
        &self,
        observed: &Observed,
        claim: Claim<ControllerRevision>,
    ) -> anyhow::Result<()> {
        let set = &*observed.set;
        let Claimed { objects: _, errors } =
            self.control_of(set).claim(&set.owner(), &CONTROLLER_REVISIONS, claim, &[]).await;
        aggregate(errors)
    }

    /// Adopts and releases pods; gives those that are the StatefulSet's own then.
    pub(crate) async fn claim_pods(&self, observed: &Observed, claim: Claim<Pod>) -> anyhow::Result<Vec<Arc<Pod>>> {
        let set = &*observed.set;
        let Claimed { objects, errors } = self.control_of(set).claim(&set.owner(), &PODS, claim, &[]).await;
        aggregate(errors)?;
        Ok(objects)
    }

    /// Makes the revision of the template of now the last one.
    pub(crate) async fn revise(&self, observed: &Observed, plan: RevisionPlan) -> anyhow::Result<Revisions> {
        let RevisionPlan { update, reason: _ } = plan;
        let (set, mut collisions) = (&*observed.set, collision_count(observed));
        let (control, owner) = (self.control_of(set), set.owner());
        let update = match update {
            Update::Keep(name) => name,
            Update::Renumber { revision, to } => {
                let name = revision.metadata.name();
                renumber(control, &revision, to)
                    .await
                    .with_context(|| format!("cannot number revision {name} {to}"))?;
                Text::new(name)
            }
            Update::Label { revision, data } => {
                let name = revision.metadata.name();
                let labelled = label(control, &revision, DEFAULTED_LABEL, &data.label()).await;
                labelled.with_context(|| format!("cannot label revision {name}"))?;
                Text::new(name)
            }
            Update::Create(new) => {
                let mut new = *new;
                loop {
                    let created = create(control, &owner, set.metadata.annotations.json(), &new).await;
                    match created.with_context(|| format!("cannot create revision {}", new.name))? {
                        Creation::Made(revision) => break Text::new(revision.metadata.name()),
                        Creation::Taken => {
                            collisions = collisions.checked_add(1).context("every name of the revision is taken")?;
                            new = new.renamed(set.metadata.name(), collisions);
                        }
                    }
                }
            }
        };
        Ok(revisions_with(observed, update, collisions))
    }

    /// Carries out a plan, group by group; a failure ends it.
    pub(crate) async fn apply(&self, observed: &Observed, revisions: &Revisions, plan: Plan) -> Outcome {
        let Plan { is_ordered, replicas, condemned_claims, condemned, outdated, stuck, reason: _ } = plan;
        let mut outcome = Outcome::default();
        let of_set = match OfSet::new(self, &observed.set, revisions, &replicas).await {
            Ok(of_set) => of_set,
            Err(error) => return Outcome { error: Some(error), ..outcome },
        };
        for group in [replicas, condemned_claims, condemned] {
            if let Err(error) = of_set.carry_out(&group, is_ordered).await {
                return Outcome { error: Some(error), ..outcome };
            }
        }
        for deletion in &outdated {
            match of_set.delete(deletion).await {
                Ok(()) => outcome.outdated += 1,
                Err(error) => return Outcome { error: Some(error), ..outcome },
            }
        }
        if let Some(eviction) = &stuck {
            match of_set.evict(eviction).await {
                Ok(refused) => outcome.refused = refused,
                Err(error) => return Outcome { error: Some(error), ..outcome },
            }
        }
        outcome
    }

    /// Tells that replacements of rejected pods wait from now on.
    pub(crate) fn tell_of_back_off(&self, set: &StatefulSet, begun: &Rejection) {
        self.ctx.event(PlannedEvent::warning(set.reference(), REJECTED_POD_BACKOFF, begun.to_string()));
    }

    /// Record an event about a pod that the apiserver would refuse.
    pub(crate) fn tell_of_long_label(&self, set: &StatefulSet, pod: &str, label: LongLabel) {
        let message = format!("Create Pod {pod} in StatefulSet {} failed error: {label}", set.metadata.name());
        self.ctx.event(PlannedEvent::warning(set.reference(), pods::FAILED_CREATE, message));
    }

    /// Deletes revisions, up to the first failure.
    pub(crate) async fn truncate(&self, observed: &Observed, truncation: Truncation) -> anyhow::Result<()> {
        let Truncation { delete: revisions, reason: _ } = truncation;
        for revision in revisions {
            let deleted = delete(self.control_of(&observed.set), &revision).await;
            deleted.with_context(|| format!("cannot delete revision {}", revision.metadata.key))?;
        }
        Ok(())
    }

    /// Writes the status, unless it can wait and has to.
    ///
    /// Upstream: `UpdateStatefulSetStatus`, `pkg/controller/statefulset/stateful_set_status_updater.go`.
    pub(crate) async fn write_status(
        &self,
        observed: &Observed,
        status: &StatefulSetStatus,
        can_wait: bool,
    ) -> anyhow::Result<StatusWrite> {
        /// Upstream puts the whole status, and so removes conditions.
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            status: &'a StatefulSetStatus,
            conditions: (),
        }
        let meta = &observed.set.metadata;
        let patch = Patch::status(&BTreeMap::from([("status", Whole { status, conditions: () })]));
        let (uid, version) = (meta.uid, meta.resource_version);
        self.statuses.write(NewStatus { key: &meta.key, uid, version, patch, can_wait }).await
    }
}
