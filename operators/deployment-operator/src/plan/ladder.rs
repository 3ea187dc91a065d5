//! The stages of a sync: claim, list pods and read a template if the plan depends on them, and act. `sync` executes each
//! stage, and `preview` shows the next one.

use jiff::Timestamp;
use shared::api::explain::Stage;
use shared::api::owner::Claim;
use shared::controllers::live_spec::NotCached;
use shared::working::decisions::{LiveRead, stage};

use super::claim::plan_claim;
use super::live_read::{Unknown, plan_live_read};
use super::template_read::{TemplateOf, plan_template_read};
use super::{Plan, plan};
use crate::objects::ReplicaSet;
use crate::observe::Observed;

pub enum Next {
    Claim(Claim<ReplicaSet>),
    ListPods(LiveRead<Unknown>),
    ReadTemplate(LiveRead<NotCached>, TemplateOf),
    Act(Plan),
}

/// The next stage, with the observation that it rests on.
pub fn next(observed: Observed, now: Timestamp) -> (Observed, Next) {
    let observed = if observed.is_claimed {
        observed
    } else {
        let claim = plan_claim(&observed);
        if !claim.is_settled() {
            return (observed, Next::Claim(claim));
        }
        observed.claimed(claim.owned)
    };
    let live_read = if observed.live_pods.is_none() { plan_live_read(&observed, now) } else { None };
    if let Some(live_read) = live_read {
        return (observed, Next::ListPods(live_read));
    }
    let plan = plan(&observed, now);
    let next = match plan_template_read(&observed, &plan) {
        Some((live_read, of)) => Next::ReadTemplate(live_read, of),
        None => Next::Act(plan),
    };
    (observed, next)
}

impl Next {
    /// The stage as `preview` shows it.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Claim(claim) => stage(claim),
            Self::ListPods(live_read) => stage(live_read),
            Self::ReadTemplate(live_read, _) => stage(live_read),
            Self::Act(plan) => stage(plan),
        }
    }
}
