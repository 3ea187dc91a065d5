//! The stages of a sync, each decided on the results of those before it. `sync` executes all of them; `preview` goes up
//! to the first one that needs a write.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;
use shared::api::explain::Stage;
use shared::api::owner::Claim;
use shared::controllers::live_spec::{NotCached, read_spec};
use shared::controllers::revisions::ControllerRevision;
use shared::controllers::revisions::data::Unreadable;
use shared::controllers::revisions::defaults::Unknown;
use shared::controllers::revisions::truncation::Truncation;
use shared::working::decisions::{LiveRead, stage};

use super::claim::{plan_pod_claim, plan_revision_claim};
use super::revisions::{RevisionPlan, Revisions, plan_live_read, plan_revisions, plan_truncation};
use super::{Plan, plan, refusal};
use crate::objects::DaemonSet;
use crate::objects::pod::Pod;
use crate::observe::Observed;

pub enum Next {
    /// Do nothing, not even write a status.
    Refuse(Plan),
    ClaimRevisions(Claim<ControllerRevision>),
    ClaimPods(Claim<Pod>),
    /// Read the data of the newest revision.
    ReadRevision(LiveRead<Unknown>),
    ReadTemplate(LiveRead<NotCached>),
    /// Make the revision of the current template the last one.
    Revise(RevisionPlan),
    Manage(Plan, Revisions),
    Truncate(Truncation),
}

pub struct Ladder {
    pub observed: Observed,
    rung: Rung,
}

enum Rung {
    ClaimRevisions,
    ClaimPods(Vec<Arc<ControllerRevision>>),
    Revise,
    Manage(Revisions),
    Truncate(Revisions),
    Done,
}

impl Ladder {
    pub fn new(observed: Observed) -> Self {
        Self { observed, rung: Rung::ClaimRevisions }
    }

    /// The next stage. A stage whose result is needed has to be followed by that result.
    pub fn next(&mut self, now: Timestamp) -> Result<Option<Next>, Unreadable> {
        let observed = &self.observed;
        let refusal = refusal(&observed.set).filter(|_| matches!(self.rung, Rung::ClaimRevisions));
        if let Some(reason) = refusal {
            self.rung = Rung::Done;
            return Ok(Some(Next::Refuse(Plan::nothing(reason))));
        }
        let (next, rung) = match std::mem::replace(&mut self.rung, Rung::Done) {
            Rung::ClaimRevisions => (Next::ClaimRevisions(plan_revision_claim(observed)), Rung::Done),
            Rung::ClaimPods(revisions) => (Next::ClaimPods(plan_pod_claim(observed)), Rung::ClaimPods(revisions)),
            Rung::Revise => match (revise(observed), read_spec(&*observed.set)) {
                (Err(Unreadable::NotCached), Some(live_read)) => (Next::ReadTemplate(live_read), Rung::Revise),
                (next, _) => (next?, Rung::Done),
            },
            Rung::Manage(revisions) => {
                let plan = plan(observed, &revisions.hash, now);
                match read_spec(&*observed.set).filter(|_| !plan.create.is_empty()) {
                    Some(live_read) => (Next::ReadTemplate(live_read), Rung::Manage(revisions)),
                    None => (Next::Manage(plan, revisions.clone()), Rung::Truncate(revisions)),
                }
            }
            // Pods that are not seen yet may be of any revision.
            Rung::Truncate(_) if observed.outstanding.is_some() => return Ok(None),
            Rung::Truncate(revisions) => (Next::Truncate(plan_truncation(observed, &revisions)), Rung::Done),
            Rung::Done => return Ok(None),
        };
        self.rung = rung;
        Ok(Some(next))
    }

    /// Continue with the revisions that are the DaemonSet's own.
    #[must_use]
    pub fn revisions_claimed(self, revisions: Vec<Arc<ControllerRevision>>) -> Self {
        Self { rung: Rung::ClaimPods(revisions), ..self }
    }

    /// Continue with the pods that are the DaemonSet's own.
    #[must_use]
    pub fn pods_claimed(self, pods: Vec<Arc<Pod>>) -> Self {
        let revisions = if let Rung::ClaimPods(revisions) = self.rung { revisions } else { Vec::new() };
        Self { observed: self.observed.claimed(pods, revisions), rung: Rung::Revise }
    }

    /// Continue with the data of the newest revision.
    #[must_use]
    pub fn read(self, data: Arc<RawValue>) -> Self {
        Self { observed: Observed { newest_data: Some(data), ..self.observed }, rung: Rung::Revise }
    }

    #[must_use]
    pub fn completed(self, set: Arc<DaemonSet>) -> Self {
        Self { observed: Observed { set, ..self.observed }, ..self }
    }

    /// Continue with the revision of the current template, whose hash pods carry now if they were `relabelled`.
    #[must_use]
    pub fn revised(self, revisions: Revisions, relabelled: bool) -> Self {
        let observed = if relabelled { self.observed.relabelled(&revisions.hash) } else { self.observed };
        Self { observed, rung: Rung::Manage(revisions) }
    }

    /// The stages up to the first one that needs a write.
    pub fn preview(mut self, now: Timestamp) -> Vec<Stage> {
        let mut stages = Vec::new();
        while let Ok(Some(next)) = self.next(now) {
            self = match next {
                Next::ClaimRevisions(claim) if claim.is_settled() => self.revisions_claimed(claim.owned),
                Next::ClaimPods(claim) if claim.is_settled() => self.pods_claimed(claim.owned),
                Next::Revise(plan) if plan.is_settled() => {
                    let revisions = plan.revisions(&self.observed);
                    self.revised(revisions, false)
                }
                Next::Manage(plan, _) => {
                    stages.push(stage(&plan));
                    if !plan.is_empty() {
                        return stages;
                    }
                    self
                }
                Next::Truncate(truncation) if truncation.delete.is_empty() => self,
                Next::Refuse(plan) => return vec![stage(&plan)],
                Next::ClaimRevisions(claim) => return vec![stage(&claim)],
                Next::ClaimPods(claim) => return vec![stage(&claim)],
                Next::ReadRevision(live_read) => return vec![stage(&live_read)],
                Next::ReadTemplate(live_read) => return vec![stage(&live_read)],
                Next::Revise(plan) => return vec![stage(&plan)],
                Next::Truncate(truncation) => {
                    stages.push(stage(&truncation));
                    self
                }
            };
        }
        stages
    }
}

/// The stage about the revision of the current template.
fn revise(observed: &Observed) -> Result<Next, Unreadable> {
    Ok(match plan_live_read(observed)? {
        Some(live_read) => Next::ReadRevision(live_read),
        None => Next::Revise(plan_revisions(observed)?),
    })
}
