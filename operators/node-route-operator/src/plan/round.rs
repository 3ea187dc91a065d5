//! A round: the routes that lead to no Node, and the Nodes whose routes or conditions are wrong.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::cidr::Cidr;
use shared::api::list::list;
use shared::api::object::Key;
use shared::working::decisions::{self, Reasoned};

use crate::objects::ListedRoute;
use crate::observe::{Observed, ObservedRound};
use crate::plan::{Reason, plan};
use crate::status::{after, before};

#[derive(Clone, Debug, PartialEq)]
pub struct RoundPlan {
    pub delete: Vec<Arc<ListedRoute>>,
    pub sync: Vec<Key>,
    pub reason: RoundReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoundReason {
    /// How many Nodes there are, with those that are gone and still have routes.
    nodes: usize,
    wrong: usize,
}

impl decisions::Reason for RoundReason {}

impl Reasoned for RoundPlan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

pub fn plan_round(observed: &ObservedRound, cluster_cidrs: &[Cidr], now: Timestamp) -> RoundPlan {
    let ObservedRound { nodes, loose } = observed;
    let delete = loose.iter().filter(|route| route.is_ours(cluster_cidrs)).cloned().collect();
    let is_wrong = |node: &&Observed| {
        let plan = plan(node, cluster_cidrs, now);
        // A Node whose cloud asked for time has a timer.
        let is_ready = !matches!(plan.reason, Reason::NotReady { until: _ });
        let has_wrong_condition = || before(node).is_some() || after(node, plan.wait.len()).is_some();
        is_ready && (plan.is_change() || has_wrong_condition())
    };
    let sync: Vec<Key> = nodes.iter().filter(is_wrong).map(|node| node.key.clone()).collect();
    let reason = RoundReason { nodes: nodes.len(), wrong: sync.len() };
    RoundPlan { delete, sync, reason }
}

impl fmt::Display for RoundPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delete, sync, reason } = self;
        if !delete.is_empty() {
            write!(f, "delete {}; ", list(delete, |route| route.destination.to_string()))?;
        }
        if sync.is_empty() {
            write!(f, "nothing to sync ({reason})")
        } else {
            write!(f, "sync {} ({reason})", list(sync, |key| key.name().to_owned()))
        }
    }
}

impl fmt::Display for RoundReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nodes: {}, wrong: {}", self.nodes, self.wrong)
    }
}
