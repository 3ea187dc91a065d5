//! The live read of a Deployment's pods, where no status tells whether old ones are left.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::working::decisions::{self, LiveRead};

use super::plan;
use super::recreate::names;
use super::replica_sets::ReplicaSets;
use crate::objects::{ReplicaSet, Strategy};
use crate::observe::{LivePods, Observed};

/// How long a look at pods is good for that no status tells of, at least and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unknown {
    /// Whether these ReplicaSets still have pods, of which no status tells.
    OldPods { replica_sets: Vec<Text> },
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

/// When to look again at old pods that no status tells of. The longer the last one has been ending, the longer its end
/// may still take.
pub fn next_live_read(observed: &Observed, now: Timestamp) -> Option<Duration> {
    let pods = observed.live_pods.as_ref()?;
    let sets = ReplicaSets::of(observed);
    let since = sets.old.iter().filter_map(|old| pods.get(&old.metadata.uid)).max()?;
    let ending = since.and_then(|since| Duration::try_from(now.duration_since(since)).ok()).unwrap_or_default();
    let (shortest, longest) = PAUSE;
    Some((ending / 4).clamp(shortest, longest))
}
