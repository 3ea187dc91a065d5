//! The memory between syncs: rejections of each StatefulSet's pods. A rejected pod is deleted before its replacement is
//! created, so they must be remembered.
//!
//! Nothing is kept about a StatefulSet whose pods run. The memory is lost with this process, and counting starts again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::api::pod::Phase;
use shared::controllers::rejections::{Rejection, Rejections};
use shared::following::cache::Change;

use crate::objects::StatefulSet;
use crate::objects::pod::Pod;

/// The most StatefulSets that are remembered; others have no back-off.
const SETS_MAX: usize = 4096;

/// The rejected pods of all StatefulSets, as far as they are known.
#[derive(Debug, Default)]
pub struct Rejected(Mutex<BTreeMap<Uid, OfSet>>);

#[derive(Clone, Debug, Default)]
struct OfSet {
    rejections: Rejections,
    /// The rejected pods that are there, which count once.
    counted: BTreeSet<Uid>,
}

impl Rejected {
    fn sets(&self) -> MutexGuard<'_, BTreeMap<Uid, OfSet>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the rejected pods of a StatefulSet, and forgets what does not count any more. Gives the rejection with
    /// which a back-off begins, too. Nothing is remembered about a StatefulSet that was deleted meanwhile: nobody would
    /// forget it again.
    pub fn note(&self, set: Uid, pods: &[Arc<Pod>], now: Timestamp, exists: bool) -> (Rejections, Option<Rejection>) {
        if !exists {
            return (self.look(set, pods, now), None);
        }
        let mut sets = self.sets();
        let is_known = sets.contains_key(&set);
        if !is_known && !has_rejected(pods) {
            return (Rejections::default(), None);
        }
        if !is_known && sets.len() >= SETS_MAX {
            sets.retain(|_, known| !known.is_over(now));
            if sets.len() >= SETS_MAX {
                return (Rejections::default(), None);
            }
        }
        let mut known = sets.remove(&set).unwrap_or_default();
        let begun = known.note(pods, now);
        let rejections = known.rejections.clone();
        if !known.is_empty() {
            sets.insert(set, known);
        }
        (rejections, begun)
    }

    /// As [`Self::note`], for a look that changes nothing.
    pub fn look(&self, set: Uid, pods: &[Arc<Pod>], now: Timestamp) -> Rejections {
        let mut known = self.sets().get(&set).cloned().unwrap_or_default();
        known.note(pods, now);
        known.rejections
    }

    pub fn set_changed(&self, change: &Change<'_, StatefulSet>) {
        if let Change::Deleted(set) = change {
            self.sets().remove(&set.metadata.uid);
        }
    }
}

fn has_rejected(pods: &[Arc<Pod>]) -> bool {
    pods.iter().any(|pod| pod.rejection.is_some())
}

impl OfSet {
    fn note(&mut self, pods: &[Arc<Pod>], now: Timestamp) -> Option<Rejection> {
        let is_running = |pod: &Pod, revision: &str| pod.phase == Phase::Running && pod.revision() == revision;
        let runs = |revision: &str| {
            pods.iter().filter(|pod| is_running(pod, revision)).filter_map(|pod| pod.metadata.creation).max()
        };
        self.rejections.forget(runs, now);
        let (counted, mut begun) = (std::mem::take(&mut self.counted), None);
        for pod in pods {
            let Some(reason) = pod.rejection.clone() else { continue };
            self.counted.insert(pod.metadata.uid);
            if counted.contains(&pod.metadata.uid) {
                continue;
            }
            let rejection = Rejection { template: Text::new(pod.revision()), reason, created: pod.metadata.creation };
            if self.rejections.note(&rejection, now) && begun.is_none() {
                begun = Some(rejection);
            }
        }
        begun
    }

    fn is_empty(&self) -> bool {
        let Self { rejections, counted } = self;
        rejections.is_empty() && counted.is_empty()
    }

    fn is_over(&self, now: Timestamp) -> bool {
        let mut left = self.rejections.clone();
        left.forget(|_| None, now);
        left.is_empty()
    }
}
