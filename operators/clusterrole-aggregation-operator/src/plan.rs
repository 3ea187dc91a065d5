//! Which rules an aggregated role gets. If roles select each other, each gets the rules of the others, as upstream.
//!
//! Upstream: `syncClusterRole`, `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use shared::api::object::Uid;
use shared::api::selector::InvalidSelector;
use shared::working::decisions::{self, Reasoned};

use crate::objects::{ClusterRole, Rule};
use crate::observe::Observed;

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Nothing(Reason),
    Apply { rules: Vec<Rule>, uid: Uid, reason: Reason },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It has no `aggregationRule`.
    NotAggregated,
    /// One of its selectors is not valid.
    InvalidSelector { error: InvalidSelector },
    Complete {
        /// How many rules it has.
        rules: usize,
        /// How many roles it selects.
        roles: usize,
    },
    /// Its rules differ from those of the selected roles.
    Different {
        /// How many of their rules are missing.
        missing: usize,
        /// How many rules it has that none of them has.
        foreign: usize,
        /// How many roles it selects.
        roles: usize,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) | Self::Apply { reason, .. } => reason,
        }
    }
}

pub fn plan(observed: &Observed) -> Plan {
    let Observed { cluster_role, selected } = observed;
    if cluster_role.aggregation_rule.is_none() {
        return Plan::Nothing(Reason::NotAggregated);
    }
    let selected = match selected {
        Ok(selected) => selected,
        Err(error) => return Plan::Nothing(Reason::InvalidSelector { error: error.clone() }),
    };
    let (rules, wanted) = union(selected);
    let has: Vec<String> = cluster_role.rules.iter().map(Rule::meaning).collect();
    let roles = selected.len();
    if has == wanted {
        return Plan::Nothing(Reason::Complete { rules: rules.len(), roles });
    }
    let (before, after) = (has.iter().collect::<BTreeSet<_>>(), wanted.iter().collect::<BTreeSet<_>>());
    let (missing, foreign) = (after.difference(&before).count(), before.difference(&after).count());
    Plan::Apply { rules, uid: cluster_role.metadata.uid, reason: Reason::Different { missing, foreign, roles } }
}

/// The rules of these roles in order, of those that say the same the first one, each with its meaning.
///
/// Upstream: `ruleExists`.
fn union(roles: &[Arc<ClusterRole>]) -> (Vec<Rule>, Vec<String>) {
    let mut known = BTreeSet::new();
    let rules = roles.iter().flat_map(|role| &*role.rules).map(|rule| (rule.clone(), rule.meaning()));
    rules.filter(|(_, meaning)| known.insert(meaning.clone())).unzip()
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(reason) => write!(f, "nothing ({reason})"),
            Self::Apply { rules, uid: _, reason } => write!(f, "apply {} rules ({reason})", rules.len()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAggregated => f.write_str("has no aggregationRule"),
            Self::InvalidSelector { error } => write!(f, "invalid selector: {error}"),
            Self::Complete { rules, roles } => write!(f, "has the {rules} rules of {roles} roles"),
            Self::Different { missing: 0, foreign: 0, roles } => {
                write!(f, "rules of {roles} selected roles: wrong order or duplicates")
            }
            Self::Different { missing, foreign, roles } => {
                write!(f, "rules of {roles} selected roles: {missing} missing, {foreign} extra")
            }
        }
    }
}
