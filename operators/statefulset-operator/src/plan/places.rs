//! The pods of a StatefulSet by their ordinals, and how far each is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::names::LABEL_VALUE_MAX_LENGTH;
use shared::api::object::Uid;
use shared::api::pod::Phase;

use super::pods::{is_of_current, is_running_and_ready};
use super::reasons::{LongLabel, Numbers, Until};
use super::revisions::Revisions;
use crate::flags::gates::FeatureGates;
use crate::objects::names::{is_pod_name, ordinal};
use crate::objects::pod::Pod;
use crate::objects::{POD_NAME_LABEL, REVISION_LABEL, StatefulSetSpec};
use crate::observe::Observed;

/// The pods of a StatefulSet by their ordinals.
pub(super) struct Places<'a> {
    pub(super) replicas: BTreeMap<i64, &'a Arc<Pod>>,
    /// The others, the highest ordinal first.
    pub(super) condemned: Vec<&'a Arc<Pod>>,
}

impl<'a> Places<'a> {
    pub(super) fn of(observed: &'a Observed) -> Self {
        let set = &*observed.set;
        let (wanted, mut replicas, mut condemned) = (set.spec.ordinals(), BTreeMap::new(), Vec::new());
        for pod in &observed.pods {
            let ordinal = ordinal(pod);
            if wanted.contains(&ordinal) {
                match replicas.entry(ordinal) {
                    Entry::Vacant(free) => {
                        free.insert(pod);
                    }
                    // Of `web-1` and `web-01` the first one has the place.
                    Entry::Occupied(mut taken) if is_pod_name(set.metadata.name(), pod.metadata.name()) => {
                        taken.insert(pod);
                    }
                    Entry::Occupied(_) => {}
                }
            } else if ordinal >= 0 {
                condemned.push(pod);
            }
        }
        condemned.sort_by(|a, b| ordinal(b).cmp(&ordinal(a)).then_with(|| a.metadata.key.cmp(&b.metadata.key)));
        Self { replicas, condemned }
    }

    /// Whether the pod of this ordinal is missing, on its way out, or does not run yet. One without a node for it is
    /// none of these: no node can reject it.
    pub(super) fn is_under_way(&self, ordinal: i64) -> bool {
        let Some(pod) = self.replicas.get(&ordinal) else { return true };
        if pod.phase.is_terminal() {
            pod.metadata.is_being_deleted()
        } else {
            pod.phase != Phase::Running && !pod.is_unschedulable
        }
    }
}

/// Whether a pod is ready for long enough, and stays.
pub(super) fn is_available(pod: &Pod, spec: &StatefulSetSpec, now: Timestamp) -> bool {
    pod.readiness.is_available(spec.min_ready_seconds, now) && !pod.metadata.is_being_deleted()
}

/// The label for which the apiserver would refuse a pod of this name and revision.
pub(super) fn long_label(pod: &str, revision: &str) -> Option<LongLabel> {
    let labels = [(REVISION_LABEL, revision.len()), (POD_NAME_LABEL, pod.len())];
    let too_long = labels.into_iter().find(|(_, length)| *length > LABEL_VALUE_MAX_LENGTH);
    too_long.map(|(label, length)| LongLabel { label, length })
}

pub(super) struct Known<'a> {
    pub(super) observed: &'a Observed,
    pub(super) revisions: &'a Revisions,
    pub(super) places: Places<'a>,
    pub(super) gates: FeatureGates,
    pub(super) now: Timestamp,
}

impl<'a> Known<'a> {
    pub(super) fn spec(&self) -> &'a StatefulSetSpec {
        &self.observed.set.spec
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        is_available(pod, self.spec(), self.now)
    }

    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        pod.revision() == &*self.revisions.update
    }

    /// The revision that a new pod of this ordinal is made from.
    pub(super) fn revision_of(&self, ordinal: i64) -> &'a Text {
        let Revisions { current, update, collision_count: _ } = self.revisions;
        if is_of_current(&self.observed.set, ordinal) { current } else { update }
    }

    /// The state that a pod has to reach before others may come or go.
    pub(super) fn obstacle(&self, pod: &Pod) -> Option<Until> {
        if pod.metadata.is_being_deleted() {
            Some(Until::Gone)
        } else if !is_running_and_ready(pod) {
            Some(Until::Ready)
        } else if !self.is_available(pod) {
            Some(Until::Available)
        } else {
            None
        }
    }

    /// The first pod that is not available: by ordinals, and of those that are asked for before the others.
    pub(super) fn first_unavailable(&self) -> Option<Uid> {
        let in_order = self.places.replicas.values().chain(self.places.condemned.iter().rev());
        let mut unavailable = in_order.filter(|pod| !self.is_available(pod));
        unavailable.next().map(|pod| pod.metadata.uid)
    }

    pub(super) fn numbers(&self) -> Numbers {
        let Places { replicas, condemned } = &self.places;
        let count = |counts: &dyn Fn(&Pod) -> bool| replicas.values().filter(|pod| counts(pod)).count();
        Numbers {
            wanted: i64::from(self.spec().replicas),
            present: replicas.len(),
            available: count(&|pod| self.is_available(pod)),
            updated: count(&|pod| self.is_updated(pod)),
            condemned: condemned.len(),
        }
    }
}
