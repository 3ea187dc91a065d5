//! The view of a PersistentVolumeClaim: its metadata. The views of a Pod are in [`pod`].

pub mod pod;

use serde::Deserialize;
use shared::api::object::Meta;
use shared::api::resource::PERSISTENT_VOLUME_CLAIMS;

/// Upstream: `FailedBinding`, `pkg/controller/volume/events/event.go`.
pub const FAILED_BINDING: &str = "FailedBinding";

#[derive(Debug, PartialEq, Deserialize)]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
}

shared::view!(PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS);
