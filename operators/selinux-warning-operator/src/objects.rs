//! The views of a PersistentVolumeClaim, its PersistentVolume and a CSIDriver. That of a Pod is in [`pod`].

pub mod label;
pub mod pod;
pub mod volume;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::{CSI_DRIVERS, PERSISTENT_VOLUME_CLAIMS};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawClaim")]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
    /// The volume that it is bound to.
    pub volume: Option<Text>,
}

shared::view!(PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIMS);

#[derive(Deserialize)]
struct RawClaim {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawClaimSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawClaimStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawClaimSpec {
    volume_name: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawClaimStatus {
    phase: String,
}

impl From<RawClaim> for PersistentVolumeClaim {
    fn from(RawClaim { metadata, spec, status }: RawClaim) -> Self {
        let is_bound = status.phase == "Bound";
        Self { metadata, volume: spec.volume_name.filter(|name| is_bound && !name.is_empty()) }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
pub struct CsiDriver {
    pub metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: DriverSpec,
}

shared::view!(CsiDriver, CSI_DRIVERS);

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct DriverSpec {
    #[serde(rename = "seLinuxMount")]
    selinux_mount: Option<bool>,
}

impl CsiDriver {
    /// Whether its volumes can be mounted with a label.
    pub fn mounts_with_label(&self) -> bool {
        self.spec.selinux_mount == Some(true)
    }
}
