//! The keys that a change of a claim, a slice, a rule or a pod enqueues.
//!
//! Slices and claims of healthy devices change all the time, so only what concerns tainted devices counts.

use std::collections::BTreeSet;
use std::sync::Arc;

use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{DeviceTaintRule, Pod, ResourceClaim, ResourceSlice};
use crate::observe::Caches;

impl Caches {
    /// Upstream: `handleClaimChange`, `pkg/controller/devicetainteviction/device_taint_eviction.go`.
    pub(crate) fn claim_changed(&self, change: Change<'_, ResourceClaim>) -> Vec<Effect> {
        match change {
            Change::Added(claim) | Change::Deleted(claim) => self.sync_users(&[Arc::clone(claim)], Cause::Event),
            Change::Updated { old, new } if (&old.devices, &old.consumers) == (&new.devices, &new.consumers) => {
                Vec::new()
            }
            Change::Updated { old, new } => self.sync_users(&[Arc::clone(old), Arc::clone(new)], Cause::Edit),
        }
    }

    /// Upstream: `handleSliceChange`.
    pub(crate) fn slice_changed(&self, change: Change<'_, ResourceSlice>) -> Vec<Effect> {
        self.sync_users(&self.claims_of_slice(change), Cause::Edit)
    }

    /// Upstream: `handleRuleChange`.
    pub(crate) fn rule_changed(&self, change: Change<'_, DeviceTaintRule>) -> Vec<Effect> {
        let evicts_pods = match change {
            Change::Added(rule) | Change::Deleted(rule) => rule.evicts_pods(),
            Change::Updated { old, new } => old.evicts_pods() || new.evicts_pods(),
        };
        if evicts_pods { self.sync_users(&self.claims_of_rule(change), Cause::Edit) } else { Vec::new() }
    }

    /// Upstream: `handlePodChange`.
    pub(crate) fn pod_changed(&self, change: Change<'_, Pod>) -> Vec<Effect> {
        let key = &change.latest().metadata.key;
        let (is_other, cause) = match change {
            Change::Added(_) | Change::Deleted(_) => (true, Cause::Event),
            Change::Updated { old, new } => {
                let is_deletion = new.metadata.is_being_deleted() && !old.metadata.is_being_deleted();
                (is_deletion || old.claims != new.claims, Cause::Edit)
            }
        };
        let is_concerned = is_other && (self.uses_tainted(change.latest()) || self.evictions.has(key));
        if is_concerned { vec![Effect::Enqueue(key.clone(), cause)] } else { Vec::new() }
    }

    fn uses_tainted(&self, pod: &Pod) -> bool {
        let namespace = pod.metadata.namespace();
        pod.claims.iter().any(|reference| self.tainted.has(&Key::new(namespace, &reference.name)))
    }

    /// Syncs the pods that use tainted ones of these claims, and those whose deletion is pending.
    fn sync_users(&self, claims: &[Arc<ResourceClaim>], cause: Cause) -> Vec<Effect> {
        let mut pods: BTreeSet<Key> = BTreeSet::new();
        for claim in claims {
            let is_tainted = self.tainted.has(&claim.metadata.key);
            pods.extend(self.users_of(claim).into_iter().filter(|pod| is_tainted || self.evictions.has(pod)));
        }
        pods.into_iter().map(|pod| Effect::Enqueue(pod, cause)).collect()
    }

    /// Notes whether a claim is tainted. The handlers that enqueue pods come after those that note this.
    pub(super) fn note_claim(&self, change: Change<'_, ResourceClaim>) {
        // Most writes of a claim leave its devices as they are, and a look at their taints reads every rule.
        if let Change::Updated { old, new } = change
            && old.devices == new.devices
        {
            return;
        }
        let is_tainted = change.existing().is_some_and(|claim| self.is_tainted(claim));
        self.tainted.note(&change.latest().metadata.key, is_tainted);
    }

    /// Notes which claims a rule taints, and forgets what a rule that is gone did.
    pub(super) fn note_rule(&self, change: Change<'_, DeviceTaintRule>) {
        self.note_claims(&self.claims_of_rule(change));
        if let Change::Deleted(rule) = change {
            self.evicted.forget(rule.metadata.uid);
        }
    }

    /// Notes which of these claims are tainted.
    pub(super) fn note_claims(&self, claims: &[Arc<ResourceClaim>]) {
        for claim in claims {
            self.tainted.note(&claim.metadata.key, self.is_tainted(claim));
        }
    }
}

/// The states of a claim before and after a change, as far as it has devices in them.
pub(super) fn allocated(change: Change<'_, ResourceClaim>) -> [Option<&Arc<ResourceClaim>>; 2] {
    let states = match change {
        Change::Added(claim) => [None, Some(claim)],
        Change::Updated { old, new } => [Some(old), Some(new)],
        Change::Deleted(last) => [Some(last), None],
    };
    states.map(|claim| claim.filter(|claim| claim.is_allocated()))
}

/// Upstream: `handleRuleChange`. The condition is written when the rule is new, and after each change of its spec.
pub(super) fn own_rule_changed(change: Change<'_, DeviceTaintRule>) -> Vec<Effect> {
    let (key, uid) = (change.latest().metadata.key.clone(), change.latest().metadata.uid);
    match change {
        Change::Updated { old, new } if old.has_spec_of(new) => Vec::new(),
        Change::Added(_) => vec![Effect::Enqueue(key, Cause::Event)],
        Change::Updated { .. } => vec![Effect::Enqueue(key, Cause::Edit)],
        Change::Deleted(_) => vec![Effect::Forget(key, uid)],
    }
}
