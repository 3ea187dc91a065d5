//! Which blocks are taken: by Nodes in the cache, by the range of Services, and by Nodes that were given CIDRs which
//! the cache does not show yet.
//!
//! CIDRs that a Node was given stay its own until the cache shows its CIDRs or its deletion, or the apiserver has
//! refused them. So after a lost answer, or with a cache that is behind, it is given the same again, and no other Node
//! gets them.
//! Left out: CIDRs that a former process was about to give. It writes nothing once its Lease has expired, and the next
//! process begins with the Nodes as they are after that.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::object::{Key, Uid};
use shared::runtime::cache::Change;

use super::cidr_set::CidrSet;
use super::{Place, Range};
use crate::metrics::{CidrSetMetrics, SetMetrics};
use crate::objects::cidr::Cidr;
use crate::objects::{Node, PodCidr};

/// The blocks of all ranges.
pub struct Pool(Mutex<State>);

struct State {
    /// One for each range, in their order, with its metrics.
    sets: Vec<(CidrSet, SetMetrics)>,
    given: BTreeMap<Key, Given>,
}

/// CIDRs that a Node was given and that the cache does not show.
struct Given {
    uid: Uid,
    cidrs: Vec<Cidr>,
    /// Whether they may be stored, or in use: a patch that is refused says nothing of an earlier one.
    may_be_stored: bool,
}

impl Pool {
    /// These sets, of which the range of Services is taken already, and no Node.
    pub fn new(sets: Vec<CidrSet>, metrics: &CidrSetMetrics) -> Self {
        let with_metrics = |set: CidrSet| {
            let metrics = metrics.of(&set);
            (set, metrics)
        };
        Self(Mutex::new(State { sets: sets.into_iter().map(with_metrics).collect(), given: BTreeMap::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a change that the cache has seen.
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
        // Taken first, and let go last: a block that goes from one holder to the next is never free in between.
        if had != has {
            ranges(has).for_each(|cidr| state.occupy(cidr));
        }
        if new.is_none() || !has.is_empty() {
            let was_given = state.take_back(key, uid);
            if old.is_some() && had.is_empty() && !was_given {
                // Another replica has given them. If this one is the next to give some, it goes on from there.
                ranges(has).for_each(|cidr| state.move_past(cidr));
            }
        } else if !had.is_empty() {
            // Only an etcd that was restored from a backup takes CIDRs away, and the kubelet still uses them.
            state.give(key, uid, ranges(had).collect(), true);
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

    /// The ranges as they are now.
    pub fn ranges(&self) -> Vec<Range> {
        let range = |set: &CidrSet| Range { cluster_cidr: set.cluster_cidr(), next: set.next_free(), free: set.free() };
        self.state().sets.iter().map(|(set, _)| range(set)).collect()
    }

    /// To how many Nodes CIDRs could be given.
    pub fn free(&self) -> u64 {
        self.state().sets.iter().map(|(set, _)| set.free()).min().unwrap_or_default()
    }

    /// The CIDRs that this Node was given, as long as the cache does not show any.
    pub fn given(&self, key: &Key, uid: Uid) -> Option<Vec<Cidr>> {
        let state = self.state();
        state.given.get(key).filter(|given| given.uid == uid).map(|given| given.cidrs.clone())
    }

    /// Takes these CIDRs for a Node, unless it was given them before.
    pub fn give(&self, key: &Key, uid: Uid, cidrs: &[Cidr]) {
        let mut state = self.state();
        if state.given.get(key).is_some_and(|given| given.uid == uid) {
            return;
        }
        state.give(key, uid, cidrs.to_vec(), false);
        for (set, metrics) in &mut state.sets {
            let tries = cidrs.iter().filter_map(|cidr| set.move_past(*cidr));
            tries.for_each(|tries| metrics.searched(tries));
        }
    }

    /// The apiserver has refused the CIDRs that a Node was given. They stay its own if an earlier patch may be stored.
    pub fn refuse(&self, key: &Key, uid: Uid) {
        let mut state = self.state();
        if state.given.get(key).is_some_and(|given| !given.may_be_stored) {
            state.take_back(key, uid);
        }
    }

    /// The CIDRs that a Node was given are stored, or no answer says that they are not.
    pub fn keep(&self, key: &Key, uid: Uid) {
        if let Some(given) = self.state().given.get_mut(key).filter(|given| given.uid == uid) {
            given.may_be_stored = true;
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

    /// A Node is given these in place of CIDRs that it was given before.
    fn give(&mut self, key: &Key, uid: Uid, cidrs: Vec<Cidr>, may_be_stored: bool) {
        for cidr in &cidrs {
            self.occupy(*cidr);
        }
        if let Some(former) = self.given.insert(key.clone(), Given { uid, cidrs, may_be_stored }) {
            former.cidrs.into_iter().for_each(|cidr| self.release(cidr));
        }
    }

    /// Whether the Node was given CIDRs, which are its own no more.
    fn take_back(&mut self, key: &Key, uid: Uid) -> bool {
        if self.given.get(key).is_none_or(|given| given.uid != uid) {
            return false;
        }
        let given = self.given.remove(key).into_iter();
        given.flat_map(|given| given.cidrs).for_each(|cidr| self.release(cidr));
        true
    }
}

fn ranges(cidrs: &[PodCidr]) -> impl Iterator<Item = Cidr> {
    cidrs.iter().filter_map(PodCidr::range)
}
