//! Decides what one sync of a Deployment does, and why, from an observation and nothing else.
//!
//! Reading order: [`replica_sets`] → `revision` → [`progress`] (a pause) → [`scale`], `rollback`, `recreate` or
//! `rolling` → [`new_replica_set`], `history` → `step`. A plan that creates the new ReplicaSet ends there, because
//! the rest depends on the result; the controller then plans again.

pub mod claim;
mod history;
pub mod ladder;
pub mod limits;
pub mod live_read;
pub mod new_replica_set;
pub mod progress;
pub mod reasons;
mod recreate;
pub mod replica_sets;
mod revision;
mod rollback;
mod rolling;
pub mod scale;
mod step;
pub mod template_read;

use std::fmt;

use jiff::Timestamp;
use shared::api::condition::Condition;
use shared::api::intern::Text;
use shared::api::object::Kind;
use shared::working::decisions::{self, Reasoned};
use shared::working::events::PlannedEvent;

use crate::objects::{self, Strategy};
use crate::observe::Observed;
use reasons::{Reason, Rollout};
use replica_sets::ReplicaSets;
use revision::{Agreement, agree};
pub use step::{NewReplicaSet, ReplicaSetDeletion, ReplicaSetUpdate, Rollback, RollbackTarget, Scale, Step};
use step::{Resize, updates};

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which way the sync goes, and so why it does what it does, or nothing.
    pub reason: Reason,
    /// The Deployment's revision annotation becomes this; written with the status.
    pub revision: Option<Text>,
    /// The Progressing condition becomes this before the status is worked out; written with it.
    pub progressing: Option<Condition>,
    /// The writes before the status, in this order; the first failure ends the plan.
    pub steps: Vec<Step>,
    /// The part of the status that is written afterwards.
    pub status: StatusScope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusScope {
    /// Only what was decided on the way: the revision, and a condition.
    Decided,
    ObservedGeneration,
    Counts,
    /// All of it, with the progress of the rollout.
    Rollout,
}

/// Decides what one sync does.
///
/// Upstream: `syncDeployment`, `pkg/controller/deployment/deployment_controller.go`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    if observed.deployment.selects_everything() {
        let message = "This deployment is selecting all pods. A non-empty selector is required.".to_owned();
        let about = observed.deployment.reference();
        let event = PlannedEvent::warning(about, objects::reasons::SELECTING_ALL, message);
        return Plan::of(Reason::SelectsEverything, vec![Step::Event(event)], StatusScope::ObservedGeneration);
    }
    if let Err(invalid) = observed.deployment.selector() {
        let error = Text::new(&invalid.to_string());
        return Plan::of(Reason::InvalidSelector { error }, Vec::new(), StatusScope::Decided);
    }
    let sets = ReplicaSets::of(observed);
    let Agreement { update, revision, progressing } = agree(observed, &sets, now);
    let is_being_deleted = observed.deployment.metadata.is_being_deleted();
    let pause = if is_being_deleted { None } else { progress::pause_condition(observed, now) };
    let Decision { reason, resizes, then, status } = if is_being_deleted {
        Decision::new(Reason::BeingDeleted, StatusScope::Counts)
    } else {
        decide(observed, &sets)
    };
    let steps = updates(&observed.deployment, update, resizes).chain(then).collect();
    Plan { revision, progressing: pause.or(progressing), ..Plan::of(reason, steps, status) }
}

/// What one sync does beside the annotations and the pause.
struct Decision<'a> {
    reason: Reason,
    resizes: Vec<Resize<'a>>,
    /// The steps after the resizes.
    then: Vec<Step>,
    status: StatusScope,
}

impl Decision<'_> {
    fn new(reason: Reason, status: StatusScope) -> Self {
        Self { reason, resizes: Vec::new(), then: Vec::new(), status }
    }

    /// Nothing but this step, after which the status is not known.
    fn only(reason: Reason, step: Step) -> Self {
        Self { then: vec![step], ..Self::new(reason, StatusScope::Decided) }
    }
}

fn decide<'a>(observed: &Observed, sets: &ReplicaSets<'a>) -> Decision<'a> {
    let spec = observed.spec();
    let rollback = rollback::rollback_to(observed);
    if spec.paused {
        let then = if rollback.is_none() { history::clean_up(spec, sets) } else { Vec::new() };
        let (reason, resizes) = (Reason::Paused(Rollout::of(spec, sets)), scale::scale(observed, sets));
        return Decision { reason, resizes, then, status: StatusScope::Counts };
    }
    if let Some(wanted) = rollback {
        return rollback::roll_back(observed, sets, wanted);
    }
    if scale::is_scaling_event(observed) {
        let resizes = scale::scale(observed, sets);
        return Decision { resizes, ..Decision::new(Reason::Scaling { wanted: spec.replicas }, StatusScope::Counts) };
    }
    match &spec.strategy {
        Strategy::Recreate => recreate::recreate(observed, sets),
        Strategy::RollingUpdate { .. } => rolling::roll(observed, sets),
        Strategy::Unknown(type_) => {
            let failure = Step::Fail(format!("unexpected deployment strategy type: {type_}"));
            Decision::only(Reason::UnknownStrategy { strategy: type_.clone() }, failure)
        }
    }
}

impl Plan {
    fn of(reason: Reason, steps: Vec<Step>, status: StatusScope) -> Self {
        Self { reason, revision: None, progressing: None, steps, status }
    }

    /// Whether the other plan does the same, for whatever reason.
    fn does_what(&self, other: &Self) -> bool {
        let Self { reason: _, revision, progressing, steps, status } = self;
        (revision, progressing, steps, status) == (&other.revision, &other.progressing, &other.steps, &other.status)
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() { write!(f, "{}", self.reason) } else { f.write_str(self.reason.in_short()) }?;
        if let Some(revision) = &self.revision {
            write!(f, "; revision {revision}")?;
        }
        if let Some(Condition { status, reason, .. }) = &self.progressing {
            write!(f, "; Progressing {status} {reason}")?;
        }
        for step in &self.steps {
            write!(f, "; {step}")?;
        }
        match self.status {
            StatusScope::Decided => Ok(()),
            StatusScope::ObservedGeneration => f.write_str("; status: observed generation"),
            StatusScope::Counts => f.write_str("; status: counts"),
            StatusScope::Rollout => f.write_str("; status: rollout"),
        }
    }
}
