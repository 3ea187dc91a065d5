//! The stages of a sync, each decided on the results of those before it. `sync` executes all of them; `preview` goes up
//! to the first one that needs a write.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;
use shared::api::explain::Stage;
use shared::api::owner::Claim;
use shared::controllers::live_spec::{NotCached, read_spec};
use shared::controllers::rejections::Rejections;
use shared::controllers::revisions::ControllerRevision;
use shared::controllers::revisions::data::Unreadable;
use shared::controllers::revisions::defaults::Unknown;
use shared::controllers::revisions::truncation::Truncation;
use shared::working::decisions::{LiveRead, stage};

use super::claim::{plan_pod_claim, plan_revision_claim};
use super::revisions::{RevisionPlan, Revisions, plan_live_read, plan_revisions, plan_truncation, revisions_with};
use super::{Plan, plan};
use crate::flags::gates::FeatureGates;
use crate::objects::StatefulSet;
use crate::objects::pod::Pod;
use crate::observe::Observed;

pub enum Next {
    /// Do nothing: the selector cannot be read.
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
    ClaimPods,
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
    pub fn next(&mut self, gates: FeatureGates, now: Timestamp) -> Result<Option<Next>, Unreadable> {
        let observed = &self.observed;
        let (next, rung) = match &self.rung {
            Rung::ClaimRevisions if observed.set.spec.selector.is_err() => {
                let nothing = revisions_with(observed, observed.set.status.update_revision.clone(), 0);
                (Next::Refuse(plan(observed, &nothing, gates, now)), Rung::Done)
            }
            Rung::ClaimRevisions => (Next::ClaimRevisions(plan_revision_claim(observed)), Rung::ClaimPods),
            Rung::ClaimPods => (Next::ClaimPods(plan_pod_claim(observed)), Rung::Done),
            Rung::Revise => match (revise(observed), read_spec(&*observed.set)) {
                (Err(Unreadable::NotCached), Some(live_read)) => (Next::ReadTemplate(live_read), Rung::Revise),
                (next, _) => (next?, Rung::Done),
            },
            Rung::Manage(revisions) => {
                let plan = plan(observed, revisions, gates, now);
                match read_spec(&*observed.set).filter(|_| plan.copies_template(revisions)) {
                    Some(live_read) => (Next::ReadTemplate(live_read), Rung::Manage(revisions.clone())),
                    None => (Next::Manage(plan, revisions.clone()), Rung::Truncate(revisions.clone())),
                }
            }
            Rung::Truncate(revisions) => (Next::Truncate(plan_truncation(observed, revisions)), Rung::Done),
            Rung::Done => return Ok(None),
        };
        self.rung = rung;
        Ok(Some(next))
    }

    /// Continue with the pods that are the StatefulSet's own, and what is known of rejected ones.
    #[must_use]
    pub fn claimed(self, pods: Vec<Arc<Pod>>, rejections: Rejections) -> Self {
        Self { observed: self.observed.claimed(pods).with(rejections), rung: Rung::Revise }
    }

    /// Continue with the data of the newest revision.
    #[must_use]
    pub fn read(self, data: Arc<RawValue>) -> Self {
        Self { observed: Observed { newest_data: Some(data), ..self.observed }, rung: Rung::Revise }
    }

    #[must_use]
    pub fn completed(self, set: Arc<StatefulSet>) -> Self {
        Self { observed: Observed { set, ..self.observed }, ..self }
    }

    #[must_use]
    pub fn revised(self, revisions: Revisions) -> Self {
        Self { rung: Rung::Manage(revisions), ..self }
    }

    /// The stages up to the first one that needs a write. `rejections` are looked up for the pods that are its own.
    pub fn preview(
        mut self,
        gates: FeatureGates,
        now: Timestamp,
        rejections: impl Fn(&[Arc<Pod>]) -> Rejections,
    ) -> Vec<Stage> {
        let mut stages = Vec::new();
        while let Ok(Some(next)) = self.next(gates, now) {
            self = match next {
                Next::ClaimRevisions(claim) if claim.is_settled() => self,
                Next::ClaimPods(claim) if claim.is_settled() => {
                    let rejections = rejections(&claim.owned);
                    self.claimed(claim.owned, rejections)
                }
                Next::Revise(plan) => match plan.settled(&self.observed) {
                    Some(revisions) => self.revised(revisions),
                    None => return vec![stage(&plan)],
                },
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
