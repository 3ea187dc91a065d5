//! What is written into the status of a claim and of a volume.
//!
//! The apiserver notes by itself when a volume has come into its phase.

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::api::intern::Text;
use shared::api::quantity::Quantity;

use crate::objects::AccessModes;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::volume::PersistentVolume;

/// The phases that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Bound,
    Lost,
    Available,
    Released,
    Failed,
}

impl Phase {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Bound => "Bound",
            Self::Lost => "Lost",
            Self::Available => "Available",
            Self::Released => "Released",
            Self::Failed => "Failed",
        }
    }
}

/// The fields of a claim's status that are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimStatus {
    pub phase: Phase,
    access_modes: Field<AccessModes>,
    capacity: Field<Quantity>,
    attributes_class: Field<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Field<T> {
    Keep,
    Remove,
    Set(T),
}

impl<T: Serialize> Field<T> {
    fn removed(is_there: bool) -> Self {
        if is_there { Self::Remove } else { Self::Keep }
    }

    /// What the patch has for it.
    fn value(&self) -> Option<Value> {
        match self {
            Self::Keep => None,
            Self::Remove => Some(Value::Null),
            Self::Set(value) => Some(json!(value)),
        }
    }
}

/// A volume without a size cannot give a claim one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCapacity;

impl ClaimStatus {
    /// The status of a claim that has no volume. None if it has that already.
    ///
    /// Upstream: `updateClaimStatus` without a volume, as the next one with it.
    pub fn without_volume(claim: &PersistentVolumeClaim, phase: Phase) -> Option<Self> {
        let status = &claim.status;
        let changed = Self {
            phase,
            access_modes: Field::removed(status.access_modes.is_some()),
            capacity: Field::removed(status.capacity.is_some()),
            attributes_class: Field::removed(status.current_volume_attributes_class_name.is_some()),
        };
        changed.unless_same(claim)
    }

    /// The status of a claim that is bound to this volume. None if it has that already.
    pub fn bound(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<Option<Self>, NoCapacity> {
        let (status, modes) = (&claim.status, &volume.spec.access_modes);
        let has_modes = status.access_modes.clone().unwrap_or_default() == *modes;
        let mut changed = Self {
            phase: Phase::Bound,
            access_modes: if has_modes { Field::Keep } else { Field::Set(modes.clone()) },
            capacity: Field::Keep,
            attributes_class: Field::Keep,
        };
        // Afterwards the size is the resizer's: a file system may be smaller than its volume for a while.
        if status.phase != Phase::Bound.as_str() {
            let provided = volume.storage().ok_or(NoCapacity)?;
            let before = volume.metadata.annotations.pre_resize_capacity.as_ref();
            let known = status.capacity.as_ref().and_then(|capacity| capacity.storage);
            changed.capacity = match before {
                Some(before) => Field::Set(before.parse().unwrap_or(provided)),
                None if known == Some(provided) => Field::Keep,
                None => Field::Set(provided),
            };
        }
        // So is the class of its attributes.
        let class = &volume.spec.volume_attributes_class_name;
        if status.phase == Phase::Pending.as_str() && status.current_volume_attributes_class_name != *class {
            changed.attributes_class = class.clone().map_or(Field::Remove, Field::Set);
        }
        Ok(changed.unless_same(claim))
    }

    fn unless_same(self, claim: &PersistentVolumeClaim) -> Option<Self> {
        let Self { phase, access_modes, capacity, attributes_class } = &self;
        let is_same = claim.status.phase == phase.as_str()
            && *access_modes == Field::Keep
            && *capacity == Field::Keep
            && *attributes_class == Field::Keep;
        (!is_same).then_some(self)
    }

    /// The merge patch.
    pub fn body(&self) -> Value {
        let Self { phase, access_modes, capacity, attributes_class } = self;
        let mut status = Map::from_iter([("phase".to_owned(), json!(phase.as_str()))]);
        let mut set = |field: &str, value: Option<Value>| {
            status.extend(value.map(|value| (field.to_owned(), value)));
        };
        let size = |size: Value| if size.is_null() { size } else { json!({ "storage": size }) };
        set("accessModes", access_modes.value());
        set("capacity", capacity.value().map(size));
        set("currentVolumeAttributesClassName", attributes_class.value());
        json!({ "status": status })
    }
}

/// The phase of a volume, and what has led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeStatus {
    pub phase: Phase,
    pub message: String,
}

impl VolumeStatus {
    /// None if the volume is in this phase already: a message is written with its phase only.
    ///
    /// Upstream: `updateVolumePhase`.
    pub fn new(volume: &PersistentVolume, phase: Phase, message: impl Into<String>) -> Option<Self> {
        (*volume.phase() != phase.as_str()).then(|| Self { phase, message: message.into() })
    }

    /// The merge patch.
    pub fn body(&self) -> Value {
        let Self { phase, message } = self;
        let message = if message.is_empty() { Value::Null } else { json!(message) };
        json!({ "status": { "phase": phase.as_str(), "message": message } })
    }
}
