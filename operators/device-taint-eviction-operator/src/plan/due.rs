//! When a pod is evicted because of the taints of its devices, and which taints cause that.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::time::Time;

use crate::objects::{AllocatedDevice, DeviceTaint, Pod};
use crate::observe::{Observed, UsedClaim};

/// The eviction of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The earliest time of all its causes.
    pub at: Time,
    /// All causes, also those whose own time comes later, as upstream.
    pub causes: BTreeSet<Cause>,
    /// When the DeviceTaintRules alone would evict it; none if they never would.
    pub by_rules: Option<Time>,
    /// When the driver alone would evict it; none if it never would.
    pub by_driver: Option<(Time, Suspect)>,
}

/// The taint of a device that is not tolerated forever.
///
/// Upstream: `trackedTaint`, `pkg/controller/devicetainteviction/device_taint_eviction.go`, in its order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    Rule {
        name: Text,
        #[serde(skip)]
        uid: Uid,
    },
    /// A driver has published it.
    #[serde(rename_all = "camelCase")]
    Slice {
        /// `driver/pool/device`.
        device: Text,
        taint: Text,
        resource_slice: Text,
    },
}

/// The claim whose device a driver has tainted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suspect {
    pub driver: Text,
    pub claim: Uid,
}

/// Upstream: `podEvictionTime`.
pub fn due(observed: &Observed) -> Option<Due> {
    let pod = observed.pod.as_ref()?;
    let used = observed.claims.iter().filter(|used| is_used(used, pod, observed.by_group));
    used.filter_map(|used| due_for(used, observed)).reduce(Due::join)
}

/// Whether the pod uses the claim: a name alone does not say so.
pub(super) fn is_used(used: &UsedClaim, pod: &Pod, by_group: bool) -> bool {
    let UsedClaim { claim, is_from_template, slices: _ } = used;
    (!is_from_template || claim.is_for(pod, by_group)) && claim.is_reserved_for(pod, by_group)
}

/// Upstream: `claimEvictionTime`.
fn due_for(used: &UsedClaim, observed: &Observed) -> Option<Due> {
    let UsedClaim { claim, is_from_template: _, slices } = used;
    let mut all: Option<Due> = None;
    let mut add = |due: Option<Due>| all = [all.take(), due].into_iter().flatten().reduce(Due::join);
    for device in &claim.devices {
        for slice in slices.iter().filter(|slice| slice.pool == device.id.pool) {
            for taint in slice.taints_of(&device.id.device) {
                let cause = Cause::Slice {
                    device: Text::new(&device.id.to_string()),
                    taint: name(taint),
                    resource_slice: Text::new(slice.metadata.name()),
                };
                let suspect = Suspect { driver: slice.pool.driver.clone(), claim: claim.metadata.uid };
                add(end_of(device, taint).map(|at| Due::new(at, cause, Some(suspect))));
            }
        }
        let evicting = observed.rules.iter().filter(|rule| rule.evicts_pods() && rule.selects(&device.id));
        for rule in evicting {
            let cause = Cause::Rule { name: Text::new(rule.metadata.name()), uid: rule.metadata.uid };
            add(end_of(device, &rule.taint).map(|at| Due::new(at, cause, None)));
        }
    }
    all
}

/// When a device stops tolerating its taint; none if it never does.
pub(super) fn end_of(device: &AllocatedDevice, taint: &DeviceTaint) -> Option<Time> {
    let seconds = device.tolerates_for(taint)?;
    taint.added.map(|added| Time::from_second(added.second().saturating_add(seconds)))
}

/// As `kubectl` prints it, without the effect, which is always `NoExecute`.
fn name(taint: &DeviceTaint) -> Text {
    let (key, value) = (&taint.taint.key, &taint.taint.value);
    if value.is_empty() { key.clone() } else { Text::new(&format!("{key}={value}")) }
}

impl Due {
    fn new(at: Time, cause: Cause, suspect: Option<Suspect>) -> Self {
        let by_rules = suspect.is_none().then_some(at);
        let by_driver = suspect.map(|suspect| (at, suspect));
        Self { at, causes: BTreeSet::from([cause]), by_rules, by_driver }
    }

    fn join(mut self, other: Self) -> Self {
        let Self { at, causes, by_rules, by_driver } = other;
        self.causes.extend(causes);
        Self {
            at: self.at.min(at),
            causes: self.causes,
            by_rules: self.by_rules.into_iter().chain(by_rules).min(),
            by_driver: self.by_driver.into_iter().chain(by_driver).min(),
        }
    }

    /// The DeviceTaintRules among its causes.
    pub fn rules(&self) -> impl Iterator<Item = (Key, Uid)> {
        self.causes.iter().filter_map(|cause| match cause {
            Cause::Rule { name, uid } => Some((Key::new("", name), *uid)),
            Cause::Slice { .. } => None,
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { name, uid: _ } => write!(f, "DeviceTaintRule {name}"),
            Self::Slice { device, taint, resource_slice } => {
                write!(f, "taint {taint} of device {device} in ResourceSlice {resource_slice}")
            }
        }
    }
}
