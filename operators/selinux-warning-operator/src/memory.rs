//! Which pods use which volume, and how, remembered between syncs: it says whether a conflict is new. Another process
//! begins without it and reports each conflict again, as upstream.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::intern::Text;
use shared::api::object::{Key, Uid};

use crate::objects::label::{Property, Usage};
use crate::objects::volume::Disk;

/// A pod is compared with so many of the others that use its volume in the same way, and with so many ways.
const OTHERS_MAX: usize = 100;

/// Upstream: `volumeCache`, `pkg/controller/volume/selinuxwarning/cache/volumecache.go`.
#[derive(Default)]
pub struct Volumes(Mutex<State>);

#[derive(Default)]
struct State {
    volumes: HashMap<Text, Used>,
    pods: HashMap<Key, User>,
}

struct Used {
    driver: Option<Text>,
    /// The pods that use it, by how they use it.
    pods: BTreeMap<Usage, BTreeSet<Key>>,
}

struct User {
    uid: Uid,
    volumes: BTreeMap<Text, Usage>,
}

/// Two pods that use one volume, seen from the first of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    pub property: Property,
    pub pod: Key,
    pub value: String,
    pub other: Key,
    pub other_value: String,
}

impl Volumes {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How this pod uses a volume, as far as it was remembered.
    pub fn usage(&self, pod: &Key, uid: Uid, volume: &Text) -> Option<Usage> {
        let state = self.state();
        state.pods.get(pod).filter(|user| user.uid == uid)?.volumes.get(volume).cloned()
    }

    /// The other pods that use a volume, by how they use it; see [`OTHERS_MAX`].
    pub fn others(&self, pod: &Key, volume: &Text) -> Vec<(Usage, Vec<Key>)> {
        let state = self.state();
        let groups = state.volumes.get(volume).into_iter().flat_map(|used| &used.pods);
        let others = groups.map(|(usage, pods)| {
            let others = pods.iter().filter(|other| *other != pod).take(OTHERS_MAX);
            (usage.clone(), others.cloned().collect::<Vec<Key>>())
        });
        others.filter(|(_, pods)| !pods.is_empty()).take(OTHERS_MAX).collect()
    }

    /// Upstream: `AddVolume`.
    pub fn add(&self, pod: &Key, uid: Uid, disk: &Disk, usage: Usage) {
        let State { volumes, pods } = &mut *self.state();
        let user = pods.entry(pod.clone()).or_insert_with(|| User { uid, volumes: BTreeMap::new() });
        let used = volumes.entry(disk.name.clone());
        let used = used.or_insert_with(|| Used { driver: disk.driver.clone(), pods: BTreeMap::new() });
        if let Some(before) = user.volumes.insert(disk.name.clone(), usage.clone()) {
            used.remove(pod, &before);
        }
        used.pods.entry(usage).or_default().insert(pod.clone());
    }

    /// Forgets an earlier pod of this key.
    pub(crate) fn remove_other_than(&self, pod: &Key, uid: Uid) {
        let mut state = self.state();
        if state.pods.get(pod).is_some_and(|user| user.uid != uid) {
            state.remove(pod);
        }
    }

    /// Upstream: `DeletePod`.
    pub fn remove(&self, pod: &Key) {
        self.state().remove(pod);
    }

    /// The pods that use volumes of a driver.
    ///
    /// Upstream: `GetPodsForCSIDriver`.
    pub fn pods_of(&self, driver: &str) -> BTreeSet<Key> {
        let state = self.state();
        let of_driver = |used: &&Used| used.driver.as_deref() == Some(driver);
        let pods = state.volumes.values().filter(of_driver).flat_map(|used| used.pods.values());
        pods.flatten().cloned().collect()
    }

    /// At most so many of the conflicts that there are, each seen from both pods.
    ///
    /// Upstream: `GetConflicts`.
    pub fn conflicts(&self, limit: usize) -> BTreeSet<Conflict> {
        let (state, mut conflicts) = (self.state(), BTreeSet::new());
        for conflict in state.volumes.values().flat_map(Used::conflicts) {
            if conflicts.len() >= limit {
                break;
            }
            conflicts.insert(conflict);
        }
        conflicts
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        let State { volumes, pods } = &*self.state();
        volumes.is_empty() && pods.is_empty()
    }
}

impl State {
    fn remove(&mut self, pod: &Key) {
        let Some(user) = self.pods.remove(pod) else { return };
        for (volume, usage) in user.volumes {
            let Some(used) = self.volumes.get_mut(&volume) else { continue };
            used.remove(pod, &usage);
            if used.pods.is_empty() {
                self.volumes.remove(&volume);
            }
        }
    }
}

impl Used {
    fn remove(&mut self, pod: &Key, usage: &Usage) {
        let Some(pods) = self.pods.get_mut(usage) else { return };
        pods.remove(pod);
        if pods.is_empty() {
            self.pods.remove(usage);
        }
    }

    fn conflicts(&self) -> impl Iterator<Item = Conflict> {
        let ways = self.pods.iter();
        let pairs = ways.clone().flat_map(move |one| ways.clone().map(move |other| (one, other)));
        pairs.flat_map(|((usage, pods), (other, others))| {
            usage.conflicts_with(other).flat_map(move |property| {
                let pairs = pods.iter().flat_map(move |pod| others.iter().map(move |other| (pod, other)));
                let (value, other_value) = (property.of(usage), property.of(other));
                pairs.map(move |(pod, other)| Conflict {
                    property,
                    pod: pod.clone(),
                    value: value.to_owned(),
                    other: other.clone(),
                    other_value: other_value.to_owned(),
                })
            })
        })
    }
}

impl fmt::Debug for Volumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Volumes").field("volumes", &state.volumes.len()).field("pods", &state.pods.len()).finish()
    }
}
