//! The strategy Recreate: all old pods go before the first new one comes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::runtime::decisions::{self, LiveRead};

use super::sync::{ReplicaSets, plan_cleanup, plan_creation, plan_revision};
use super::{Draft, Plan, Reason, Scale, StatusScope, Why, plan, progress};
use crate::objects::{ReplicaSet, Strategy};
use crate::observe::{LivePods, Observed};

/// How long a look at pods is good for that no status tells of, at least and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Upstream: `rolloutRecreate`, `pkg/controller/deployment/recreate.go`.
pub(super) fn plan_rollout(mut draft: Draft<'_>, sets: &ReplicaSets<'_>) -> Plan {
    plan_revision(&mut draft, sets);
    let (wanted, reason) = (draft.spec().replicas, Reason::recreate(draft.spec(), sets));
    let mut shrinks = false;
    for old in sets.active_old() {
        draft.scale(old, Scale { from: old.spec.replicas, to: 0 }, Why::Recreated, true);
        shrinks = true;
    }
    if shrinks {
        return draft.finish(reason, StatusScope::Rollout);
    }
    let running = may_run(draft.observed, sets);
    if !running.is_empty() {
        let is_waiting = sets.new.is_none_or(|new| new.spec.replicas != wanted);
        let reason = if is_waiting { Reason::WaitingForOldPods { replica_sets: running } } else { reason };
        return draft.finish(reason, StatusScope::Rollout);
    }
    let Some(new) = sets.new else {
        plan_creation(&mut draft, sets);
        return draft.finish(reason, StatusScope::Decided);
    };
    let scale = Scale { from: new.spec.replicas, to: wanted };
    if scale.from != scale.to {
        draft.scale(new, scale, Why::NoOldPod { wanted }, true);
    }
    if progress::is_complete_as_written(draft.observed) {
        plan_cleanup(&mut draft, sets);
    }
    draft.finish(reason, StatusScope::Rollout)
}

/// The old ReplicaSets of which a pod may still run, terminating ones included.
///
/// Upstream goes by its cache of pods; here the statuses tell, and where one leaves it open, a list does.
///
/// Upstream: `oldPodsRunning`, `recreate.go`.
fn may_run(observed: &Observed, sets: &ReplicaSets<'_>) -> Vec<Text> {
    let may_run = |old: &&&Arc<ReplicaSet>| match &observed.live_pods {
        None => old.may_run_pods() != Some(false),
        Some(pods) => old.may_run_pods() == Some(true) || pods.contains_key(&old.metadata.uid),
    };
    names(sets.old.iter().filter(may_run).copied())
}

fn names<'a>(replica_sets: impl IntoIterator<Item = &'a Arc<ReplicaSet>>) -> Vec<Text> {
    replica_sets.into_iter().map(|replica_set| Text::new(replica_set.metadata.name())).collect()
}

/// What a list of pods has to tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unknown {
    /// Whether these ReplicaSets still have pods, of which no status tells.
    OldPods {
        /// Their names.
        replica_sets: Vec<Text>,
    },
}

/// Plans a list where the plan would be another one if no old pod ran, and only that can tell.
pub fn plan_live_read(observed: &Observed, now: Timestamp) -> Option<LiveRead<Unknown>> {
    let is_open = |replica_set: &&Arc<ReplicaSet>| replica_set.may_run_pods().is_none();
    if observed.spec().strategy != Strategy::Recreate || !observed.replica_sets.iter().any(|set| is_open(&set)) {
        return None;
    }
    let without = observed.clone().with_live_pods(LivePods::new());
    let depends = !plan(observed, now).does_what(&plan(&without, now));
    let replica_sets = names(ReplicaSets::of(observed).old.into_iter().filter(is_open));
    depends.then_some(LiveRead { step: "list pods", reason: Unknown::OldPods { replica_sets } })
}

impl decisions::Reason for Unknown {}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::OldPods { replica_sets } = self;
        write!(f, "no status tells whether pods are left of {}", list(replica_sets, ToString::to_string))
    }
}

/// When to look again at old pods that no status tells of. The longer the last one has been ending, the longer its end may
/// still take.
pub fn next_live_read(observed: &Observed, now: Timestamp) -> Option<Duration> {
    let pods = observed.live_pods.as_ref()?;
    let sets = ReplicaSets::of(observed);
    let since = sets.old.iter().filter_map(|old| pods.get(&old.metadata.uid)).max()?;
    let ending = since.and_then(|since| Duration::try_from(now.duration_since(since)).ok()).unwrap_or_default();
    let (shortest, longest) = PAUSE;
    Some((ending / 4).clamp(shortest, longest))
}
