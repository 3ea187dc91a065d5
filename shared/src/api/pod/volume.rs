//! The volumes of a pod's spec: claims, volumes that are attached to nodes, and those that a kubelet can mount with an
//! SELinux label.
//!
//! Left out: what is in a volume of any other plugin.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::api::csi_translation::{
    AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, GcePersistentDisk, InTreeSource, InlineVolume, PortworxVolume,
    TranslationError, VsphereVolume,
};
use crate::api::names::ephemeral_claim_name;
use crate::api::object::Key;
use crate::api::volume_name::{FcSource, IscsiSource};

/// `v1` `Volume`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodVolume<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    persistent_volume_claim: Option<ClaimSource<'a>>,
    ephemeral: Option<IgnoredAny>,
    fc: Option<FcSource>,
    iscsi: Option<IscsiSource>,
    aws_elastic_block_store: Option<AwsElasticBlockStore>,
    azure_disk: Option<AzureDisk>,
    azure_file: Option<AzureFile>,
    cinder: Option<Cinder>,
    gce_persistent_disk: Option<GcePersistentDisk>,
    portworx_volume: Option<PortworxVolume>,
    vsphere_volume: Option<VsphereVolume>,
}

/// `v1` `PersistentVolumeClaimVolumeSource`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSource<'a> {
    #[serde(borrow)]
    claim_name: Cow<'a, str>,
}

/// The claim of a pod's volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeClaim {
    pub name: Box<str>,
    /// Whether the claim is made for the pod, which must own it.
    pub is_ephemeral: bool,
}

/// Where the files of a pod's volume are.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    Claim(VolumeClaim),
    /// An in-tree volume that a CSI driver has replaced, as the driver's.
    Csi(Box<InlineVolume>),
    /// A volume of `fc` or `iscsi`, which nodes attach by themselves; its unique name.
    OfNode(String),
    Other,
}

impl PodVolume<'_> {
    /// The claim of the volume in the pod of this name. As upstream, a volume with both sources has an ephemeral claim.
    pub fn claim(&self, pod: &str) -> Option<VolumeClaim> {
        if self.ephemeral.is_some() {
            return Some(VolumeClaim { name: ephemeral_claim_name(pod, &self.name).into(), is_ephemeral: true });
        }
        let source = self.persistent_volume_claim.as_ref()?;
        Some(VolumeClaim { name: Box::from(&*source.claim_name), is_ephemeral: false })
    }

    /// # Errors
    /// When its CSI driver does not take it.
    ///
    /// Upstream: `CreateVolumeSpec`, `pkg/controller/volume/attachdetach/util/util.go`.
    pub fn source(self, pod: &Key) -> Result<Source, TranslationError> {
        if let Some(claim) = self.claim(pod.name()) {
            return Ok(Source::Claim(claim));
        }
        let name = self.name;
        let in_tree = self.aws_elastic_block_store.map(InTreeSource::AwsElasticBlockStore);
        let in_tree = in_tree
            .or_else(|| self.azure_disk.map(InTreeSource::AzureDisk))
            .or_else(|| self.azure_file.map(InTreeSource::AzureFile))
            .or_else(|| self.cinder.map(InTreeSource::Cinder))
            .or_else(|| self.gce_persistent_disk.map(InTreeSource::GcePersistentDisk))
            .or_else(|| self.portworx_volume.map(InTreeSource::PortworxVolume))
            .or_else(|| self.vsphere_volume.map(InTreeSource::VsphereVolume));
        if let Some(in_tree) = in_tree {
            return in_tree.inline(&name, pod.namespace()).map(|volume| Source::Csi(Box::new(volume)));
        }
        let of_node = self.fc.and_then(|fc| fc.volume()).or_else(|| self.iscsi.map(|iscsi| iscsi.volume()));
        Ok(of_node.map_or(Source::Other, Source::OfNode))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn source(volume: &Value) -> Source {
        let text = volume.to_string();
        serde_json::from_str::<PodVolume<'_>>(&text).unwrap().source(&Key::new("default", "web")).unwrap()
    }

    #[test]
    fn a_volume_has_the_claim_that_it_names_or_that_is_made_for_it() {
        let claim = json!({ "claimName": "shared" });
        let ephemeral = json!({ "volumeClaimTemplate": {} });
        for (volume, name, is_ephemeral) in [
            (json!({ "name": "data", "persistentVolumeClaim": claim }), "shared", false),
            (json!({ "name": "data", "ephemeral": ephemeral }), "web-data", true),
            (json!({ "name": "data", "ephemeral": ephemeral, "persistentVolumeClaim": claim }), "web-data", true),
        ] {
            let expected = Source::Claim(VolumeClaim { name: name.into(), is_ephemeral });
            assert_eq!(source(&volume), expected, "{volume}");
        }
    }

    #[test]
    fn a_volume_of_each_in_tree_plugin_is_its_drivers() {
        for (field, value, driver) in [
            ("awsElasticBlockStore", json!({ "volumeID": "vol-1" }), "ebs.csi.aws.com"),
            ("azureDisk", json!({ "diskURI": "d" }), "disk.csi.azure.com"),
            ("azureFile", json!({ "shareName": "s" }), "file.csi.azure.com"),
            ("cinder", json!({ "volumeID": "v" }), "cinder.csi.openstack.org"),
            ("gcePersistentDisk", json!({ "pdName": "p" }), "pd.csi.storage.gke.io"),
            ("portworxVolume", json!({ "volumeID": "v" }), "pxd.portworx.com"),
            ("vsphereVolume", json!({ "volumePath": "v" }), "csi.vsphere.vmware.com"),
        ] {
            let Source::Csi(volume) = source(&json!({ "name": "data", (field): value })) else {
                panic!("{field} is not of a driver")
            };
            assert_eq!(volume.driver(), driver);
        }
    }

    #[test]
    fn a_volume_that_its_driver_does_not_take_has_no_source() {
        let text = r#"{ "name": "data", "azureDisk": { "kind": "Shared" } }"#;
        let volume: PodVolume<'_> = serde_json::from_str(text).unwrap();
        assert!(volume.source(&Key::new("default", "web")).is_err());
    }

    #[test]
    fn volumes_that_nodes_attach_have_their_unique_names_and_others_have_none() {
        for (volume, expected) in [
            (json!({ "name": "data", "fc": { "wwids": ["a"] } }), Source::OfNode("kubernetes.io/fc/[a]".to_owned())),
            (
                json!({ "name": "data", "iscsi": { "targetPortal": "p", "iqn": "i", "lun": 1 } }),
                Source::OfNode("kubernetes.io/iscsi/p:i:1".to_owned()),
            ),
            (json!({ "name": "data", "emptyDir": {} }), Source::Other),
            (json!({ "name": "data" }), Source::Other),
        ] {
            assert_eq!(source(&volume), expected, "{volume}");
        }
    }
}
