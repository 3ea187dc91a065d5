//! The taken blocks, remembered between syncs: those of Nodes in the cache, those of Services, and those that were
//! assigned to Nodes whose CIDRs the cache does not show yet.
//!
//! An assignment lasts until the cache shows the Node's CIDRs or its deletion, or until the apiserver refuses it. After a
//! lost answer the Node therefore gets the same CIDRs again, and no other Node gets them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::cidr::{Cidr, PodCidr};
use shared::api::object::{Key, Uid};
use shared::following::cache::Change;

use crate::metrics::{CidrSetMetrics, SetMetrics};
use crate::objects::Node;
use crate::objects::cidr_set::CidrSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub cluster_cidr: Cidr,
    /// The block that a Node would get; none if all are taken.
    pub next: Option<Cidr>,
    /// How many blocks are free.
    pub free: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Own,
    /// In a range, and it shares addresses with another holder.
    Shared,
    Outside,
}

pub struct Pool(Mutex<State>);

struct State {
    /// One for each range, in their order, with its metrics.
    sets: Vec<(CidrSet, SetMetrics)>,
    assigned: BTreeMap<Key, Assignment>,
}

/// CIDRs that were assigned to a Node, while the cache does not show them.
struct Assignment {
    uid: Uid,
    cidrs: Vec<Cidr>,
    /// Whether they may be stored or in use. The refusal of a later patch does not change that.
    may_be_stored: bool,
}

impl Pool {
    /// These sets, in which only the range of Services is taken.
    pub fn new(sets: Vec<CidrSet>, metrics: &CidrSetMetrics) -> Self {
        let with_metrics = |set: CidrSet| {
            let metrics = metrics.of(&set);
            (set, metrics)
        };
        Self(Mutex::new(State { sets: sets.into_iter().map(with_metrics).collect(), assigned: BTreeMap::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, change: &Change<'_, Node>) {
        let (old, new) = match change {
            Change::Added(new) => (None, Some(*new)),
            Change::Updated { old, new } => (Some(*old), Some(*new)),
            Change::Deleted(last) => (Some(*last), None),
        };
        let (had, has) = (old.map_or(&[][..], |node| node.pod_cidrs()), new.map_or(&[][..], |node| node.pod_cidrs()));
        let node = change.latest();
        let (key, uid) = (&node.metadata.key, node.metadata.uid);
        let mut state = self.state();
        // Occupy first and release last, so that a block which changes hands is never free in between.
        if had != has {
            ranges(has).for_each(|cidr| state.occupy(cidr));
        }
        if new.is_none() || !has.is_empty() {
            let was_assigned = state.unassign(key, uid);
            if old.is_some() && had.is_empty() && !was_assigned {
                // Another replica assigned them. This one continues from there after a takeover.
                ranges(has).for_each(|cidr| state.move_past(cidr));
            }
        } else if !had.is_empty() {
            // CIDRs vanish only when etcd is restored from a backup, and the kubelet still uses them.
            state.assign(key, uid, ranges(had).collect(), true);
        }
        if had != has {
            ranges(had).for_each(|cidr| state.release(cidr));
        }
    }

    /// Where each of these CIDRs of a Node is.
    pub fn places(&self, cidrs: &[PodCidr]) -> Vec<Place> {
        let state = self.state();
        let place = |cidr: &PodCidr| {
            let Some(cidr) = cidr.range() else { return Place::Outside };
            match state.sets.iter().filter_map(|(set, _)| set.holders(cidr)).max() {
                None => Place::Outside,
                Some(0 | 1) => Place::Own,
                Some(_) => Place::Shared,
            }
        };
        cidrs.iter().map(place).collect()
    }

    pub fn ranges(&self) -> Vec<Range> {
        let range = |set: &CidrSet| Range { cluster_cidr: set.cluster_cidr(), next: set.next_free(), free: set.free() };
        self.state().sets.iter().map(|(set, _)| range(set)).collect()
    }

    /// How many Nodes can still get CIDRs.
    pub fn free(&self) -> u64 {
        self.state().sets.iter().map(|(set, _)| set.free()).min().unwrap_or_default()
    }

    /// The CIDRs that were assigned to this Node, while the cache does not show any.
    pub fn assigned(&self, key: &Key, uid: Uid) -> Option<Vec<Cidr>> {
        let state = self.state();
        state.assigned.get(key).filter(|assigned| assigned.uid == uid).map(|assigned| assigned.cidrs.clone())
    }

    /// Assigns these CIDRs to a Node, unless it has an assignment.
    pub fn assign(&self, key: &Key, uid: Uid, cidrs: &[Cidr]) {
        let mut state = self.state();
        if state.assigned.get(key).is_some_and(|assigned| assigned.uid == uid) {
            return;
        }
        state.assign(key, uid, cidrs.to_vec(), false);
        for (set, metrics) in &mut state.sets {
            let tries = cidrs.iter().filter_map(|cidr| set.move_past(*cidr));
            tries.for_each(|tries| metrics.searched(tries));
        }
    }

    /// Drops an assignment that the apiserver refused, unless an earlier patch of it may be stored.
    pub fn refuse(&self, key: &Key, uid: Uid) {
        let mut state = self.state();
        if state.assigned.get(key).is_some_and(|assigned| !assigned.may_be_stored) {
            state.unassign(key, uid);
        }
    }

    /// Keeps an assignment that is stored, or whose answer was lost.
    pub fn keep(&self, key: &Key, uid: Uid) {
        if let Some(assigned) = self.state().assigned.get_mut(key).filter(|assigned| assigned.uid == uid) {
            assigned.may_be_stored = true;
        }
    }
}

impl State {
    fn occupy(&mut self, cidr: Cidr) {
        for (set, metrics) in &mut self.sets {
            let taken = set.occupy(cidr);
            metrics.allocated(taken, set);
        }
    }

    fn release(&mut self, cidr: Cidr) {
        for (set, metrics) in &mut self.sets {
            let freed = set.release(cidr);
            metrics.released(freed, set);
        }
    }

    fn move_past(&mut self, cidr: Cidr) {
        for (set, _) in &mut self.sets {
            set.move_past(cidr);
        }
    }

    /// Assigns these, in place of a former assignment under this key.
    fn assign(&mut self, key: &Key, uid: Uid, cidrs: Vec<Cidr>, may_be_stored: bool) {
        for cidr in &cidrs {
            self.occupy(*cidr);
        }
        if let Some(former) = self.assigned.insert(key.clone(), Assignment { uid, cidrs, may_be_stored }) {
            former.cidrs.into_iter().for_each(|cidr| self.release(cidr));
        }
    }

    /// Drops the Node's assignment. Gives whether it had one.
    fn unassign(&mut self, key: &Key, uid: Uid) -> bool {
        if self.assigned.get(key).is_none_or(|assigned| assigned.uid != uid) {
            return false;
        }
        let assigned = self.assigned.remove(key).into_iter();
        assigned.flat_map(|assigned| assigned.cidrs).for_each(|cidr| self.release(cidr));
        true
    }
}

fn ranges(cidrs: &[PodCidr]) -> impl Iterator<Item = Cidr> {
    cidrs.iter().filter_map(PodCidr::range)
}
