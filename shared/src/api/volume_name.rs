//! The unique names of volumes, which say that two pods use the same one.
//!
//! Left out: volumes of plugins that neither attach one nor mount it with an SELinux label. What a CSI driver has replaced
//! is translated first: see [`crate::api::csi_translation`].
//!
//! Upstream: `GetUniqueVolumeName`, `pkg/volume/util/util.go`, of the plugins' `GetVolumeName`.

use serde::Deserialize;

use crate::api::object::null_as_default;

pub const CSI_PLUGIN: &str = "kubernetes.io/csi";
pub const FC_PLUGIN: &str = "kubernetes.io/fc";
pub const ISCSI_PLUGIN: &str = "kubernetes.io/iscsi";

/// Between the driver and the handle of a CSI volume.
pub const CSI_SEPARATOR: char = '^';

/// `kubernetes.io/csi/ebs.csi.aws.com^vol-1`.
pub fn csi_volume(driver: &str, handle: &str) -> String {
    format!("{CSI_PLUGIN}/{driver}{CSI_SEPARATOR}{handle}")
}

/// `v1` `CSIPersistentVolumeSource`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiSource {
    #[serde(deserialize_with = "null_as_default")]
    pub driver: String,
    #[serde(deserialize_with = "null_as_default")]
    pub volume_handle: String,
}

impl CsiSource {
    pub fn volume(&self) -> String {
        csi_volume(&self.driver, &self.volume_handle)
    }
}

/// `v1` `FCVolumeSource`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct FcSource {
    #[serde(rename = "targetWWNs", deserialize_with = "null_as_default")]
    target_wwns: Vec<String>,
    lun: Option<i32>,
    #[serde(deserialize_with = "null_as_default")]
    wwids: Vec<String>,
}

impl FcSource {
    /// In the form in which Go prints lists. None if it names no disk, which the apiserver refuses.
    pub fn volume(&self) -> Option<String> {
        let name = match (&*self.target_wwns, self.lun, &*self.wwids) {
            (wwns @ [_, ..], Some(lun), _) => format!("[{}]:{lun}", wwns.join(" ")),
            (_, _, wwids @ [_, ..]) => format!("[{}]", wwids.join(" ")),
            _ => return None,
        };
        Some(format!("{FC_PLUGIN}/{name}"))
    }
}

/// `v1` `ISCSIVolumeSource` and `ISCSIPersistentVolumeSource`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IscsiSource {
    #[serde(deserialize_with = "null_as_default")]
    target_portal: String,
    #[serde(deserialize_with = "null_as_default")]
    iqn: String,
    #[serde(deserialize_with = "null_as_default")]
    lun: i32,
}

impl IscsiSource {
    pub fn volume(&self) -> String {
        let Self { target_portal, iqn, lun } = self;
        format!("{ISCSI_PLUGIN}/{target_portal}:{iqn}:{lun}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn read<T: serde::de::DeserializeOwned>(source: Value) -> T {
        from_value(source).unwrap()
    }

    #[test]
    fn a_csi_volume_has_the_name_of_its_driver_and_its_handle() {
        for (source, expected) in [
            (
                json!({ "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1" }),
                "kubernetes.io/csi/ebs.csi.aws.com^vol-1",
            ),
            (json!({ "driver": "d", "volumeHandle": null }), "kubernetes.io/csi/d^"),
        ] {
            assert_eq!(read::<CsiSource>(source).volume(), expected);
        }
    }

    /// Upstream: `GetVolumeName`, `pkg/volume/fc/fc.go`.
    #[test]
    fn a_fibre_channel_volume_has_the_names_of_its_targets_or_of_itself() {
        for (source, expected) in [
            (json!({ "targetWWNs": ["a", "b"], "lun": 0 }), Some("kubernetes.io/fc/[a b]:0")),
            (json!({ "targetWWNs": ["a"], "lun": 1, "wwids": ["b"] }), Some("kubernetes.io/fc/[a]:1")),
            (json!({ "wwids": ["a", "b"] }), Some("kubernetes.io/fc/[a b]")),
            (json!({ "targetWWNs": ["a"], "wwids": ["b"] }), Some("kubernetes.io/fc/[b]")),
            (json!({ "targetWWNs": ["a"] }), None),
            (json!({ "targetWWNs": null, "lun": 0 }), None),
        ] {
            assert_eq!(read::<FcSource>(source.clone()).volume().as_deref(), expected, "{source}");
        }
    }

    /// Upstream: `GetVolumeName`, `pkg/volume/iscsi/iscsi.go`.
    #[test]
    fn an_iscsi_volume_has_the_names_of_its_portal_and_its_target() {
        let source =
            json!({ "targetPortal": "127.0.0.1:3260", "iqn": "iqn.2014-12.server:storage.target01", "lun": 2 });
        let expected = "kubernetes.io/iscsi/127.0.0.1:3260:iqn.2014-12.server:storage.target01:2";
        assert_eq!(read::<IscsiSource>(source).volume(), expected);
    }
}
