//! What becomes of a volume whose claim is gone.
//!
//! Upstream: `reclaimVolume`.

use super::edits::{Folder, Operation, Step, VolumeEdit};
use super::migration::without_in_tree;
use super::released::{Confirmed, ask, confirmed, fail};
use super::{Next, Plan, Reason, recycle};
use crate::objects::recycler::Recyclers;
use crate::objects::volume::{HOST_PATH, NFS, PersistentVolume};
use crate::observe::ObservedVolume;
use crate::status::Phase;

pub const VOLUME_FAILED_DELETE: &str = "VolumeFailedDelete";
const VOLUME_UNKNOWN_RECLAIM_POLICY: &str = "VolumeUnknownReclaimPolicy";

pub(super) fn plan(observed: &ObservedVolume, recyclers: &Recyclers) -> Next {
    let volume = &*observed.volume;
    if let Some(driver) = volume.migrated_to() {
        return Next::Execute(Plan::nothing(Reason::DriverReclaims { driver: driver.into() }));
    }
    match volume.spec.reclaim_policy.as_str() {
        "Retain" => {
            let claim = volume.spec.claim_ref.as_ref().map(|claim| claim.key.as_str());
            Next::Execute(Plan::nothing(Reason::Retained { claim: claim.unwrap_or_default().into() }))
        }
        "Recycle" => recycle::plan(observed, recyclers),
        "Delete" => match deleter(volume) {
            Deleter::External(driver) => Next::Execute(Plan::nothing(Reason::DriverReclaims { driver: driver.into() })),
            Deleter::HostPath => delete(observed),
            Deleter::None(why) => {
                let reason = Reason::CannotDelete { why: why.clone() };
                Next::Execute(fail(volume, VOLUME_FAILED_DELETE, why, reason))
            }
        },
        policy => {
            let why = "Volume has unrecognized PersistentVolumeReclaimPolicy".to_owned();
            let reason = Reason::UnknownPolicy { policy: policy.into() };
            Next::Execute(fail(volume, VOLUME_UNKNOWN_RECLAIM_POLICY, why, reason))
        }
    }
}

enum Deleter<'a> {
    External(&'a str),
    HostPath,
    None(String),
}

/// Upstream: `findDeletablePlugin`.
fn deleter(volume: &PersistentVolume) -> Deleter<'_> {
    let provisioned_by = volume.metadata.annotations.provisioned_by.as_deref().unwrap_or_default();
    match provisioned_by {
        "" => {}
        HOST_PATH => return Deleter::HostPath,
        NFS => return Deleter::None("no deletable volume plugin matched".to_owned()),
        name if name.starts_with("kubernetes.io/") => {
            return Deleter::None(format!("no volume plugin matched name: {name}"));
        }
        name => return Deleter::External(name),
    }
    let none = |why: &str| {
        let name = volume.metadata.name();
        Deleter::None(format!("error getting deleter volume plugin for volume {name:?}: {why}"))
    };
    if volume.metadata.annotations.migrated_to.is_some() || volume.csi_driver().is_some() {
        Deleter::External("its CSI driver")
    } else if volume.spec.host_path.is_some() {
        Deleter::HostPath
    } else if volume.is_nfs() {
        none("no deletable volume plugin matched")
    } else {
        none("no volume plugin matched")
    }
}

/// The plugin or driver that deletes a volume, for metrics. Annotations can say anything, so they do not count.
///
/// Upstream: `getProvisionerNameFromVolume`, which asks the class for its provisioner instead.
pub fn plugin_of_deletion(volume: &PersistentVolume) -> Option<&str> {
    match deleter(volume) {
        Deleter::HostPath => Some(HOST_PATH),
        Deleter::External(_) => volume.csi_driver(),
        Deleter::None(_) => None,
    }
}

/// Upstream: `deleteVolumeOperation`, and `Delete`, `pkg/volume/hostpath/host_path.go`.
fn delete(observed: &ObservedVolume) -> Next {
    let volume = match confirmed(observed) {
        Confirmed::Unread => return ask(&observed.volume),
        Confirmed::No => return Next::Execute(Plan::nothing(Reason::NotReleased)),
        Confirmed::Released(volume) => volume,
    };
    if volume.spec.reclaim_policy != "Delete" {
        return Next::Execute(Plan::nothing(Reason::NotReleased));
    }
    let cannot = |why: String| {
        let reason = Reason::CannotDelete { why: why.clone() };
        let mut plan = fail(volume, VOLUME_FAILED_DELETE, why, reason);
        plan.steps.insert(0, Step::CountFailure(Operation::Delete));
        Next::Execute(plan)
    };
    let Some(host_path) = &volume.spec.host_path else {
        let name = volume.metadata.name();
        return cannot(format!(
            "failed to create deleter for volume {name:?}: spec.PersistentVolumeSource.HostPath is nil"
        ));
    };
    let path = &host_path.path;
    if !is_temporary(path) {
        return cannot(format!("host_path deleter only supports /tmp/.+ but received provided {path}"));
    }
    let has_failed = *volume.phase() == Phase::Failed.as_str();
    let mut steps = vec![Step::RemoveFolder(Folder { path: path.clone(), has_failed })];
    steps.extend(without_in_tree(volume).map(|finalizers| Step::Volume(VolumeEdit::Finalizers(finalizers))));
    steps.push(Step::DeleteVolume);
    Next::Execute(Plan::of_volume(volume, steps, Reason::DeletesFolder { path: path.clone() }))
}

/// Whether it is a folder below `/tmp`, and no detour leads out of there.
fn is_temporary(path: &str) -> bool {
    let below = path.strip_prefix("/tmp/").unwrap_or_default();
    let mut parts = below.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
    parts.peek().is_some() && parts.all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_below_tmp_are_temporary() {
        for path in ["/tmp/a", "/tmp/a/b", "/tmp//a", "/tmp/./a"] {
            assert!(is_temporary(path), "{path}");
        }
        for path in
            ["", "/", "/tmp", "/tmp/", "/tmp//", "/tmp/.", "/tmp/../etc", "/tmp/a/../../etc", "/data/tmp/a", "tmp/a"]
        {
            assert!(!is_temporary(path), "{path}");
        }
    }
}
