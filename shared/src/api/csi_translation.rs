//! The in-tree volume plugins that CSI drivers have replaced. Migration of each is on, and cannot be turned off.
//!
//! Left out: the translation of a volume's source into the driver's.
//!
//! Upstream: `inTreePlugins`, `k8s.io/csi-translation-lib/translate.go`, and `IsMigrationEnabledForPlugin`,
//! `pkg/volume/csimigration/plugin_manager.go`.

/// One such plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InTreePlugin {
    /// For example `kubernetes.io/aws-ebs`.
    pub name: &'static str,
    /// The CSI driver that replaces it, for example `ebs.csi.aws.com`.
    pub driver: &'static str,
    /// The field of a PersistentVolume's spec that has the source of its volumes.
    pub source: &'static str,
}

const fn plugin(source: &'static str, name: &'static str, driver: &'static str) -> InTreePlugin {
    InTreePlugin { name, driver, source }
}

/// All of them.
pub const IN_TREE_PLUGINS: [InTreePlugin; 7] = [
    plugin("awsElasticBlockStore", "kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    plugin("azureDisk", "kubernetes.io/azure-disk", "disk.csi.azure.com"),
    plugin("azureFile", "kubernetes.io/azure-file", "file.csi.azure.com"),
    plugin("cinder", "kubernetes.io/cinder", "cinder.csi.openstack.org"),
    plugin("gcePersistentDisk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    plugin("portworxVolume", "kubernetes.io/portworx-volume", "pxd.portworx.com"),
    plugin("vsphereVolume", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

impl InTreePlugin {
    /// The plugin of a PersistentVolume, or of a pod's own volume, that has these fields. Every such volume is migrated.
    ///
    /// Upstream: `GetInTreePluginNameFromSpec`, `k8s.io/csi-translation-lib/translate.go`, and `IsMigratable`.
    pub fn of_volume(has_field: impl Fn(&str) -> bool) -> Option<Self> {
        IN_TREE_PLUGINS.into_iter().find(|plugin| has_field(plugin.source))
    }

    /// The plugin of this name, as a StorageClass or an annotation of a claim or volume names its provisioner.
    ///
    /// Upstream: `GetCSINameFromInTreeName`, `k8s.io/csi-translation-lib/translate.go`, and `IsMigrationEnabledForPlugin`.
    pub fn named(name: &str) -> Option<Self> {
        IN_TREE_PLUGINS.into_iter().find(|plugin| plugin.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_source_and_each_name_has_one_plugin_and_one_driver() {
        for plugin in IN_TREE_PLUGINS {
            assert_eq!(InTreePlugin::of_volume(|field| field == plugin.source), Some(plugin));
            assert_eq!(InTreePlugin::named(plugin.name), Some(plugin));
            assert_eq!(InTreePlugin::named(plugin.driver), None);
        }
        assert_eq!(InTreePlugin::of_volume(|field| field == "csi"), None);
        let columns: [fn(InTreePlugin) -> &'static str; 3] =
            [|plugin| plugin.name, |plugin| plugin.driver, |plugin| plugin.source];
        for column in columns {
            assert_eq!(IN_TREE_PLUGINS.map(column).into_iter().collect::<BTreeSet<_>>().len(), IN_TREE_PLUGINS.len());
        }
    }
}
