//! Reads a pod with its claims, their devices' slices and its pending deletion, or a DeviceTaintRule with the pods that use
//! its devices.
//!
//! Nothing is read live: each write carries the uid of the pod that it was decided on.

use std::collections::BTreeSet;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::{Cache, Change, IndexId, IndexValue};
use shared::following::informer::{Informer, InformerBuilder, Need};

use crate::memory::{Evicted, Evictions, Pending, TaintedClaims};
use crate::objects::{Consumer, DeviceId, DeviceTaintRule, Pod, Pool, ResourceClaim, ResourceSlice};

/// As a binding brings a pod into the watch, those without a node need not be followed.
const SCHEDULED: &str = "spec.nodeName!=";

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub key: Key,
    pub pod: Option<Arc<Pod>>,
    /// The claims that it refers to, as far as they exist.
    pub claims: Vec<UsedClaim>,
    pub rules: Vec<Arc<DeviceTaintRule>>,
    /// The pending deletion of a pod of this key, which may be a former one.
    pub pending: Option<Pending>,
    /// Whether claims of a pod's PodGroup are the pod's.
    pub by_group: bool,
}

/// A claim as one pod refers to it.
#[derive(Clone, Debug, PartialEq)]
pub struct UsedClaim {
    pub claim: Arc<ResourceClaim>,
    pub is_from_template: bool,
    /// The slices with taints of its devices, of the newest generation of each pool.
    pub slices: Vec<Arc<ResourceSlice>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRule {
    pub rule: Arc<DeviceTaintRule>,
    /// The pods for which its devices are reserved, with their claims, without slices and other rules.
    pub pods: Vec<Observed>,
    /// How many published devices it selects, if that has to be said.
    pub published: usize,
    /// How many allocated devices it selects, if that has to be said.
    pub allocated: usize,
    /// How many pods it has evicted since this process began.
    pub evicted: u64,
}

pub struct Caches {
    pub claims: Arc<Cache<ResourceClaim>>,
    claims_by_device: IndexId,
    claims_by_driver: IndexId,
    pub slices: Arc<Cache<ResourceSlice>>,
    slices_by_pool: IndexId,
    slices_by_tainted_device: IndexId,
    /// Empty without the feature gate.
    pub rules: Arc<Cache<DeviceTaintRule>>,
    /// The scheduled pods of namespaces with tainted claims.
    pub pods: Arc<Cache<Pod>>,
    pods_by_group: IndexId,
    pub tainted: TaintedClaims,
    pub evictions: Evictions,
    pub evicted: Evicted,
    by_group: bool,
}

pub(crate) struct Informers {
    pub(crate) resource_claims: Informer<ResourceClaim>,
    pub(crate) resource_slices: Informer<ResourceSlice>,
    pub(crate) device_taint_rules: Informer<DeviceTaintRule>,
    pub(crate) pods: Informer<Pod>,
    /// Of slices.
    pub(crate) devices: Need,
    /// Of pods.
    pub(crate) users: Need,
}

fn of_pool(pool: &Pool) -> IndexValue {
    IndexValue::Text(Text::new(&pool.to_string()))
}

fn of_device(id: &DeviceId) -> IndexValue {
    IndexValue::Text(Text::new(&id.to_string()))
}

fn tainted_devices(slice: &ResourceSlice) -> impl Iterator<Item = DeviceId> {
    slice.tainted.iter().map(|device| DeviceId { pool: slice.pool.clone(), device: device.name.clone() })
}

fn of_group(namespace: &str, group: &Text) -> IndexValue {
    IndexValue::from(&Key::new(namespace, group))
}

impl Caches {
    pub(crate) fn new(by_group: bool) -> (Self, Informers) {
        let mut claims = InformerBuilder::<ResourceClaim>::new();
        let claims_by_device =
            claims.index(|claim, emit| claim.devices.iter().for_each(|one| emit(of_device(&one.id))));
        let claims_by_driver = claims.index(|claim, emit| {
            claim.devices.iter().for_each(|one| emit(IndexValue::Text(one.id.pool.driver.clone())));
        });
        let mut claims = claims.build();
        let devices = claims.need(ResourceClaim::is_allocated);
        let mut slices = InformerBuilder::<ResourceSlice>::new();
        let slices_by_pool = slices.index(|slice, emit| emit(of_pool(&slice.pool)));
        let slices_by_tainted_device =
            slices.index(|slice, emit| tainted_devices(slice).for_each(|id| emit(of_device(&id))));
        let slices = slices.build();
        let mut rules = InformerBuilder::<DeviceTaintRule>::new().build();
        rules.adds_to(&devices, DeviceTaintRule::is_to_be_simulated);
        let mut pods = InformerBuilder::<Pod>::new().fields(SCHEDULED);
        let pods_by_group = pods.index(|pod, emit| {
            pod.group.iter().for_each(|group| emit(of_group(pod.metadata.namespace(), group)));
        });
        let (pods, users) = (pods.build(), Need::default());
        let caches = Self {
            claims: claims.cache(),
            claims_by_device,
            claims_by_driver,
            slices: slices.cache(),
            slices_by_pool,
            slices_by_tainted_device,
            rules: rules.cache(),
            pods: pods.cache(),
            pods_by_group,
            tainted: TaintedClaims::new(users.clone()),
            evictions: Evictions::new(users.clone()),
            evicted: Evicted::default(),
            by_group,
        };
        let (resource_claims, resource_slices, device_taint_rules) = (claims, slices, rules);
        (caches, Informers { resource_claims, resource_slices, device_taint_rules, pods, devices, users })
    }

    /// Reads the pod of this key; none if it is not followed and has no pending deletion.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let (pod, pending) = (self.pods.get(key), self.evictions.get(key));
        if pod.is_none() && pending.is_none() {
            return None;
        }
        let claims = pod
            .iter()
            .flat_map(|pod| self.claims_of(pod))
            .map(|used| UsedClaim { slices: self.tainted_slices(&used.claim), ..used });
        let claims = claims.collect();
        Some(Observed { key: key.clone(), pod, claims, rules: self.rules.all(), pending, by_group: self.by_group })
    }

    fn claims_of(&self, pod: &Pod) -> impl Iterator<Item = UsedClaim> {
        pod.claims.iter().filter_map(|reference| {
            let claim = self.claims.get(&Key::new(pod.metadata.namespace(), &reference.name))?;
            Some(UsedClaim { claim, is_from_template: reference.is_from_template, slices: Vec::new() })
        })
    }

    /// Upstream: `getDevice`, `pkg/controller/devicetainteviction/device_taint_eviction.go`, of tainted devices alone.
    fn tainted_slices(&self, claim: &ResourceClaim) -> Vec<Arc<ResourceSlice>> {
        let mut slices: Vec<Arc<ResourceSlice>> = Vec::new();
        for device in &claim.devices {
            for slice in self.slices.by_index(self.slices_by_tainted_device, &of_device(&device.id)) {
                let is_known = slices.iter().any(|known| known.metadata.key == slice.metadata.key);
                if !is_known && self.is_newest(&slice) {
                    slices.push(slice);
                }
            }
        }
        slices
    }

    fn is_newest(&self, slice: &ResourceSlice) -> bool {
        let of_pool = self.slices.by_index(self.slices_by_pool, &of_pool(&slice.pool));
        of_pool.iter().all(|other| other.generation <= slice.generation)
    }

    pub fn observe_rule(&self, key: &Key) -> Option<ObservedRule> {
        let rule = self.rules.get(key)?;
        let claims = if rule.concerns_pods() { self.selected(&rule) } else { Vec::new() };
        let users: BTreeSet<Key> = claims.iter().flat_map(|claim| self.users_of(claim)).collect();
        let pods = users.into_iter().filter_map(|key| {
            let pod = self.pods.get(&key)?;
            let (claims, rules) = (self.claims_of(&pod).collect(), vec![Arc::clone(&rule)]);
            Some(Observed { key, pod: Some(pod), claims, rules, pending: None, by_group: self.by_group })
        });
        let pods = pods.collect();
        let (published, allocated) = if rule.is_to_be_simulated() { self.count(&rule, &claims) } else { (0, 0) };
        let evicted = self.evicted.of(rule.metadata.uid);
        Some(ObservedRule { rule, pods, published, allocated, evicted })
    }

    /// How many published and how many allocated devices a rule selects.
    ///
    /// Upstream: `countTaintedDevices`, in the same file.
    fn count(&self, rule: &DeviceTaintRule, claims: &[Arc<ResourceClaim>]) -> (usize, usize) {
        let slices = self.slices.all();
        let newest = slices.iter().filter(|slice| self.is_newest(slice));
        let published = newest.flat_map(|slice| {
            slice.devices.iter().map(|device| DeviceId { pool: slice.pool.clone(), device: device.clone() })
        });
        let allocated = claims.iter().flat_map(|claim| claim.devices.iter()).filter(|device| rule.selects(&device.id));
        (published.filter(|id| rule.selects(id)).count(), allocated.count())
    }

    /// How many claims have a device of this driver.
    pub(crate) fn claims_of_driver(&self, driver: &Text) -> usize {
        self.claims.count_by_index(self.claims_by_driver, &IndexValue::Text(driver.clone()))
    }

    /// Whether a taint of its devices may end pods. How long pods tolerate it does not matter, unless that is forever.
    pub(crate) fn is_tainted(&self, claim: &ResourceClaim) -> bool {
        let rules = self.rules.all();
        let of_rule = claim.devices.iter().any(|device| {
            let mut of_device = rules.iter().filter(|rule| rule.concerns_pods() && rule.selects(&device.id));
            of_device.any(|rule| device.tolerates_for(&rule.taint).is_some())
        });
        let of_slice = || {
            self.tainted_slices(claim).iter().any(|slice| {
                let mut of_pool = claim.devices.iter().filter(|device| device.id.pool == slice.pool);
                of_pool.any(|device| {
                    let mut taints = slice.taints_of(&device.id.device).iter();
                    taints.any(|taint| device.tolerates_for(taint).is_some())
                })
            })
        };
        of_rule || of_slice()
    }

    /// The claims with a device that a rule selects.
    fn selected(&self, rule: &DeviceTaintRule) -> Vec<Arc<ResourceClaim>> {
        let driver = rule.selector.as_ref().and_then(|selector| selector.driver.clone());
        let mut claims = match driver {
            Some(driver) => self.claims.by_index(self.claims_by_driver, &IndexValue::Text(driver)),
            None => self.claims.all(),
        };
        claims.retain(|claim| claim.devices.iter().any(|device| rule.selects(&device.id)));
        claims
    }

    /// The claims that may be affected when a slice changes: another generation shows or hides the taints of other slices.
    pub(crate) fn claims_of_slice(&self, change: Change<'_, ResourceSlice>) -> Vec<Arc<ResourceClaim>> {
        let (states, is_same_pool) = match change {
            Change::Added(slice) | Change::Deleted(slice) => ([Some(slice), None], false),
            Change::Updated { old, new } => {
                let is_same_pool = (old.generation, &old.pool) == (new.generation, &new.pool);
                if is_same_pool && old.tainted == new.tainted {
                    return Vec::new();
                }
                ([Some(old), Some(new)], is_same_pool)
            }
        };
        let mut devices: BTreeSet<DeviceId> = BTreeSet::new();
        for slice in states.into_iter().flatten() {
            devices.extend(tainted_devices(slice));
            if !is_same_pool {
                let others = self.slices.by_index(self.slices_by_pool, &of_pool(&slice.pool));
                devices.extend(others.iter().flat_map(|other| tainted_devices(other)));
            }
        }
        devices.iter().flat_map(|id| self.claims.by_index(self.claims_by_device, &of_device(id))).collect()
    }

    /// The claims that may be affected when a rule changes.
    pub(crate) fn claims_of_rule(&self, change: Change<'_, DeviceTaintRule>) -> Vec<Arc<ResourceClaim>> {
        let states = match change {
            Change::Added(rule) | Change::Deleted(rule) => [Some(rule), None],
            Change::Updated { old, new } if old.has_spec_of(new) && old.concerns_pods() == new.concerns_pods() => {
                return Vec::new();
            }
            Change::Updated { old, new } => [Some(old), Some(new)],
        };
        let concerned = states.into_iter().flatten().filter(|rule| rule.concerns_pods());
        concerned.flat_map(|rule| self.selected(rule)).collect()
    }

    /// The pods that a claim is reserved for.
    pub(crate) fn users_of(&self, claim: &ResourceClaim) -> Vec<Key> {
        let namespace = claim.metadata.namespace();
        let mut users = Vec::new();
        for consumer in &claim.consumers {
            match consumer {
                Consumer::Pod { name, uid: _ } => users.push(Key::new(namespace, name)),
                Consumer::PodGroup { name } if self.by_group => {
                    let pods = self.pods.by_index(self.pods_by_group, &of_group(namespace, name));
                    users.extend(pods.iter().map(|pod| pod.metadata.key.clone()));
                }
                Consumer::PodGroup { name: _ } => {}
            }
        }
        users
    }
}
