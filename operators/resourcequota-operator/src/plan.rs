//! Counts the usage of a quota, each kind by itself.
//!
//! Upstream: `CalculateUsage`, `staging/src/k8s.io/apiserver/pkg/quota/v1/resources.go`.

pub mod extended_resources;
pub mod reasons;
pub mod scopes;
mod unstored;
pub mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::{Kind, ResourceVersion};
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, LiveRead, Reasoned};
use shared::working::events::PlannedEvent;

use crate::objects::evaluator::extended_resource;
use crate::objects::{Amounts, Evaluator, USAGE_NOT_COUNTED, amounts};
use crate::observe::{Known, Objects, Observed};
use extended_resources::ExtendedResources;
use reasons::{Reason, Unlisted};
use unstored::Unstored;
use usage::usage;

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub notices: Vec<PlannedEvent>,
    pub counted: Amounts,
    /// The kinds that cannot be counted, and why. They keep their usage.
    pub unreadable: BTreeMap<Evaluator, String>,
    /// The kinds that lag behind a charge, and the version to wait for. They keep their usage.
    pub behind: BTreeMap<Evaluator, ResourceVersion>,
    /// How many limits keep usage for objects that were charged but not stored yet.
    pub unstored: usize,
    pub is_settled: bool,
    /// When the first pod that is being deleted stops counting, or a charge expires.
    pub recount: Option<Duration>,
    /// How many kinds were counted.
    pub kinds: usize,
    pub untracked: BTreeSet<Text>,
}

/// Plans a wait while a kind is about to be listed.
pub fn plan_wait(observed: &Observed) -> Option<LiveRead<Unlisted>> {
    let unlisted = observed.kinds.iter().filter(|(_, known)| matches!(known, Known::Unlisted));
    let reason = Unlisted::of(unlisted.map(|(evaluator, _)| evaluator));
    reason.map(|reason| LiveRead { step: "wait for the first list", reason })
}

pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let (quota, extended) = (&*observed.quota, ExtendedResources::of(observed));
    let mut counted = Amounts::new();
    let (mut unreadable, mut behind) = (BTreeMap::new(), BTreeMap::new());
    let (mut kinds, mut untracked) = (0, quota.hard.keys().cloned().collect::<BTreeSet<Text>>());
    for (evaluator, known) in &observed.kinds {
        let names: Vec<Text> = quota.hard.keys().filter(|name| counts(evaluator, name, extended)).cloned().collect();
        let objects = match known {
            Known::Listed(Objects::DeviceClasses(_)) | Known::Unserved => continue,
            Known::Listed(objects) => objects,
            Known::Behind(version) => {
                behind.insert(evaluator.clone(), *version);
                continue;
            }
            Known::Unlisted => {
                unreadable.insert(evaluator.clone(), "not listed yet".to_owned());
                continue;
            }
            Known::Unreadable(error) => {
                unreadable.insert(evaluator.clone(), error.clone());
                continue;
            }
        };
        let used = usage(objects, &names, &quota.scopes, extended, now);
        match used.and_then(|used| amounts::add(&mut counted, &used)) {
            Ok(()) => kinds += 1,
            Err(error) => {
                unreadable.insert(evaluator.clone(), error.to_string());
            }
        }
        untracked.retain(|name| !names.contains(name));
    }
    for evaluator in unreadable.keys().chain(behind.keys()) {
        counted.retain(|name, _| !counts(evaluator, name, extended));
        untracked.retain(|name| !counts(evaluator, name, extended));
    }
    let Unstored { limits: unstored, is_settled } = unstored::keep(observed, &mut counted, extended, now);
    let notices = notices(observed, &unreadable);
    let expiry = observed.open.left.filter(|_| !is_settled);
    let recount = [recount(observed, now), expiry].into_iter().flatten().min();
    Plan { notices, counted, unreadable, behind, unstored, is_settled, recount, kinds, untracked }
}

/// Whether a limit of this name is about this kind.
fn counts(evaluator: &Evaluator, name: &str, extended: ExtendedResources<'_>) -> bool {
    let is_claimed = *evaluator == Evaluator::ResourceClaims
        && extended_resource(name).is_some_and(|resource| extended.has_class_of(resource));
    is_claimed || Evaluator::of(name).contains(evaluator)
}

/// One event for each kind that was not reported yet.
fn notices(observed: &Observed, unreadable: &BTreeMap<Evaluator, String>) -> Vec<PlannedEvent> {
    let event = |(evaluator, error): (&Evaluator, &String)| {
        let message = format!("Cannot count {evaluator}; its usage stays unchanged: {error}");
        PlannedEvent::warning(observed.quota.reference(), USAGE_NOT_COUNTED, message)
    };
    unreadable.iter().filter(|(evaluator, _)| !observed.reported.contains(*evaluator)).map(event).collect()
}

fn recount(observed: &Observed, now: Timestamp) -> Option<Duration> {
    let Some(Known::Listed(Objects::Pods(pods))) = observed.kinds.get(&Evaluator::Pods) else { return None };
    let ends = pods.iter().filter(|pod| pod.counts(now)).filter_map(|pod| pod.counts_until);
    // At the end itself it still counts.
    ends.filter_map(|end| end.remaining(1, now)).min()
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        Reason::of(self)
    }
}

/// `use cpu 500m, pods 2 (1 kinds are counted)`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { notices, counted, recount, .. } = self;
        for notice in notices {
            write!(f, "report {}; ", notice.reason)?;
        }
        let counted: Vec<_> = counted.iter().collect();
        let used = list(&counted, |(name, amount)| format!("{name} {amount}"));
        let used = if used.is_empty() { "nothing".to_owned() } else { used };
        write!(f, "use {used} ({})", Reason::of(self))?;
        match recount {
            Some(recount) => write!(f, "; again in {}", GoDuration(*recount)),
            None => Ok(()),
        }
    }
}
