//! Which volume fits a claim, and why others do not.
//!
//! Upstream: `k8s.io/component-helpers/storage/volume/pv_helpers.go`, and `index.go` of the controller.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use shared::api::intern::Text;
use shared::api::quantity::Quantity;
use shared::api::selector::{InvalidSelector, Selector};

use crate::objects::AccessModes;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::volume::PersistentVolume;
use crate::observe::{Candidate, Holder};

/// How many volumes are explained that do not fit.
const NEAREST: usize = 3;

/// Why a volume does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Misfit {
    pub volume: Text,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    BeingDeleted,
    TooSmall(Quantity),
    AccessModes(AccessModes),
    VolumeMode,
    AttributesClass,
    Class(Text),
    Selector,
    NotAvailable(Text),
    HeldBy(Holder),
    /// Only the scheduler chooses among the volumes of its class.
    ClassWaits,
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("it is being deleted"),
            Self::TooSmall(size) => write!(f, "it has only {size}"),
            Self::AccessModes(modes) => write!(f, "its access modes are {modes}"),
            Self::VolumeMode => f.write_str("it has another volumeMode"),
            Self::AttributesClass => f.write_str("it has another volumeAttributesClassName"),
            Self::Class(class) if class.is_empty() => f.write_str("it has no class"),
            Self::Class(class) => write!(f, "its class is {class}"),
            Self::Selector => f.write_str("the selector does not match its labels"),
            Self::NotAvailable(phase) if phase.is_empty() => f.write_str("it has no phase yet"),
            Self::NotAvailable(phase) => write!(f, "it is {phase}"),
            Self::HeldBy(Holder::Bound(claim)) => write!(f, "the binding of claim {claim} to it is complete"),
            Self::HeldBy(Holder::BeforeRestore(claim)) => {
                write!(f, "claim {claim} had it before etcd was restored from a backup")
            }
            Self::ClassWaits => f.write_str("its class waits for a pod"),
        }
    }
}

/// What a claim asks of a volume.
pub struct Wanted<'a> {
    claim: &'a PersistentVolumeClaim,
    selector: Option<Selector>,
    waits_for_consumer: bool,
}

impl<'a> Wanted<'a> {
    pub fn new(claim: &'a PersistentVolumeClaim, waits_for_consumer: bool) -> Result<Self, InvalidSelector> {
        let selector = claim.spec.selector.as_ref().map(Selector::parse).transpose()?;
        Ok(Self { claim, selector, waits_for_consumer })
    }

    /// The volume that is bound to the claim or reserved for it, or the smallest; of the volumes with the fewest access
    /// modes that has one. Of several that are equal it is the first.
    ///
    /// Upstream: `findByClaim` and `FindMatchingVolume`.
    pub fn best<'c>(&self, candidates: &'c [Candidate]) -> Option<&'c Arc<PersistentVolume>> {
        let fitting = candidates.iter().filter(|candidate| self.misfits(candidate).is_empty());
        let best = fitting.min_by_key(|Candidate { volume, held_by: _ }| {
            let is_others = !volume.is_bound_to(self.claim);
            let size = is_others.then(|| volume.capacity());
            (volume.spec.access_modes.rank(), is_others, size)
        });
        best.map(|candidate| &candidate.volume)
    }

    /// The volumes with the fewest reasons not to fit, each with its first.
    pub fn nearest(&self, candidates: &[Candidate]) -> Vec<Misfit> {
        let misfits = candidates.iter().map(|candidate| (candidate, self.misfits(candidate)));
        let mut misfits: Vec<_> =
            misfits.filter_map(|(candidate, all)| Some((all.len(), candidate, all.into_iter().next()?))).collect();
        misfits.sort_by_key(|(count, ..)| *count);
        let explained = misfits.into_iter().take(NEAREST);
        explained
            .map(|(_, Candidate { volume, .. }, why)| Misfit { volume: Text::new(volume.metadata.name()), why })
            .collect()
    }

    fn misfits(&self, Candidate { volume, held_by }: &Candidate) -> Vec<Why> {
        let (claim, modes, is_bound) = (self.claim, &volume.spec.access_modes, volume.is_bound_to(self.claim));
        let is_selected = || self.selector.as_ref().is_none_or(|selector| selector.matches(&volume.metadata.labels));
        let mut all = Vec::new();
        if !is_bound && volume.class() != claim.class() {
            all.push(Why::Class(volume.class().clone()));
        }
        if volume.capacity() < claim.requested() {
            all.push(Why::TooSmall(volume.capacity()));
        }
        if !modes.contain(&claim.spec.access_modes) {
            all.push(Why::AccessModes(modes.clone()));
        }
        if volume.volume_mode() != claim.volume_mode() {
            all.push(Why::VolumeMode);
        }
        if volume.attributes_class() != claim.attributes_class() {
            all.push(Why::AttributesClass);
        }
        if volume.metadata.is_being_deleted() {
            all.push(Why::BeingDeleted);
        }
        if !is_bound && !is_selected() {
            all.push(Why::Selector);
        }
        if !is_bound && *volume.phase() != "Available" {
            all.push(Why::NotAvailable(volume.phase().clone()));
        }
        all.extend(held_by.clone().map(Why::HeldBy));
        if !is_bound && self.waits_for_consumer {
            all.push(Why::ClassWaits);
        }
        all
    }
}

/// Why a volume does not do for the claim that names it, in upstream's words.
///
/// Upstream: `checkVolumeSatisfyClaim`.
pub fn unsatisfied(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    let why = if volume.metadata.is_being_deleted() {
        return Some(format!("the volume is marked for deletion {:?}", volume.metadata.name()));
    } else if volume.capacity().rounded_up(0) < claim.requested().rounded_up(0) {
        "requested PV is too small"
    } else if volume.class() != claim.class() {
        "storageClassName does not match"
    } else if volume.attributes_class() != claim.attributes_class() {
        "volumeAttributesClassName does not match"
    } else if volume.volume_mode() != claim.volume_mode() {
        "incompatible volumeMode"
    } else if !volume.spec.access_modes.contain(&claim.spec.access_modes) {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(why.to_owned())
}
