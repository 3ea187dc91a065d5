//! The driver that takes care of a claim or a volume in place of an in-tree plugin, and the finalizers of its volumes.

use shared::api::csi_translation::InTreePlugin;
use shared::api::intern::Text;

use super::edits::{MigratedTo, VolumeEdit};
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::volume::PersistentVolume;
use crate::objects::{EXTERNAL_FINALIZER, IN_TREE_FINALIZER};

/// The value that the annotation of the driver is to have; none if it has it.
///
/// Upstream: `updateMigrationAnnotations`, `pv_controller_base.go`.
pub(super) fn driver(provisioner: &str, noted: Option<&str>) -> Option<MigratedTo> {
    match InTreePlugin::named(provisioner) {
        Some(plugin) => (noted != Some(plugin.driver)).then_some(Some(plugin.driver)),
        None => noted.is_some_and(|noted| !noted.is_empty()).then_some(None),
    }
}

/// Upstream: `updateClaimMigrationAnnotations`.
pub(super) fn of_claim(claim: &PersistentVolumeClaim) -> Option<MigratedTo> {
    let annotations = &claim.metadata.annotations;
    let provisioner = annotations.provisioner.as_ref().or(annotations.beta_provisioner.as_ref())?;
    driver(provisioner, annotations.migrated_to.as_deref())
}

/// Upstream: `updateVolumeMigrationAnnotationsAndFinalizers`.
pub(super) fn of_volume(volume: &PersistentVolume) -> Option<VolumeEdit> {
    let annotations = &volume.metadata.annotations;
    let provisioner = annotations.provisioned_by.as_ref()?;
    let migrated_to = driver(provisioner, annotations.migrated_to.as_deref());
    let finalizers = finalizers(provisioner, volume);
    (migrated_to.is_some() || finalizers.is_some()).then_some(VolumeEdit::Migrate { migrated_to, finalizers })
}

/// The finalizers that the volume is to have; none if it has them.
///
/// Upstream: `modifyDeletionFinalizers`.
fn finalizers(provisioner: &str, volume: &PersistentVolume) -> Option<Box<[Text]>> {
    let finalizers = &volume.metadata.finalizers;
    let is_migrated = InTreePlugin::named(provisioner).is_some();
    if !is_migrated && !provisioner.starts_with("kubernetes.io/") {
        return None;
    }
    let policy = volume.spec.reclaim_policy.as_str();
    let keeps_in_tree = !is_migrated && !matches!(policy, "Retain" | "Recycle");
    let keeps = |finalizer: &&Text| match finalizer.as_str() {
        IN_TREE_FINALIZER => keeps_in_tree,
        EXTERNAL_FINALIZER => is_migrated,
        _ => true,
    };
    let mut changed: Vec<Text> = finalizers.iter().filter(keeps).cloned().collect();
    let lacks_in_tree = !changed.iter().any(|finalizer| *finalizer == IN_TREE_FINALIZER);
    if !is_migrated && policy == "Delete" && lacks_in_tree {
        changed.push(Text::new(IN_TREE_FINALIZER));
    }
    (changed[..] != finalizers[..]).then(|| changed.into())
}

/// The finalizers of a volume whose folder is gone; none if it does not have this one.
pub(super) fn without_in_tree(volume: &PersistentVolume) -> Option<Box<[Text]>> {
    let finalizers = &volume.metadata.finalizers;
    let others: Box<[Text]> = finalizers.iter().filter(|finalizer| **finalizer != IN_TREE_FINALIZER).cloned().collect();
    (others.len() < finalizers.len()).then_some(others)
}
