//! What becomes of a volume whose claim is gone.
//!
//! Upstream: `reclaimVolume`.

use shared::api::object::Kind;
use shared::working::decisions::LiveRead;
use shared::working::events::PlannedEvent;

use super::edits::{Folder, Step, VolumeEdit};
use super::migration::without_in_tree;
use super::{Again, Next, Plan, Reason};
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::volume::{HOST_PATH, NFS, PersistentVolume};
use crate::observe::{Live, ObservedVolume};
use crate::status::{Phase, VolumeStatus};

pub const VOLUME_FAILED_DELETE: &str = "VolumeFailedDelete";
const VOLUME_FAILED_RECYCLE: &str = "VolumeFailedRecycle";
const VOLUME_UNKNOWN_RECLAIM_POLICY: &str = "VolumeUnknownReclaimPolicy";

pub(super) fn plan(observed: &ObservedVolume) -> Next {
    let volume = &*observed.volume;
    let annotations = &volume.metadata.annotations;
    if let Some(driver) = annotations.migrated_to.as_ref().filter(|driver| !driver.is_empty()) {
        return Next::Execute(Plan::nothing(Reason::DriverReclaims { driver: driver.clone() }));
    }
    match volume.spec.reclaim_policy.as_str() {
        "Retain" => {
            let claim = volume.spec.claim_ref.as_ref().map(|claim| claim.key.as_str());
            Next::Execute(Plan::nothing(Reason::Retained { claim: claim.unwrap_or_default().into() }))
        }
        "Recycle" => recycle(observed),
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

/// Upstream: `updateVolumePhaseWithEvent`.
fn fail(volume: &PersistentVolume, event: &'static str, why: String, reason: Reason) -> Plan {
    let steps = VolumeStatus::new(volume, Phase::Failed, why.clone()).map(|status| {
        let event = PlannedEvent::warning(volume.reference(), event, why);
        [Step::Volume(VolumeEdit::Status(status)), Step::Tell(event)]
    });
    Plan { again: Again::Later, ..Plan::of_volume(volume, steps.into_iter().flatten().collect(), reason) }
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
    if volume.metadata.annotations.migrated_to.is_some() || volume.is_csi() {
        Deleter::External("its CSI driver")
    } else if volume.spec.host_path.is_some() {
        Deleter::HostPath
    } else if volume.is_nfs() {
        none("no deletable volume plugin matched")
    } else {
        none("no volume plugin matched")
    }
}

/// What the apiserver has of a volume that is to be reclaimed.
enum Confirmed<'a> {
    Unread,
    No,
    Released(&'a PersistentVolume),
}

/// Upstream: `isVolumeReleased`.
fn confirmed(observed: &ObservedVolume) -> Confirmed<'_> {
    let volume = match &observed.live_volume {
        Live::Unread => return Confirmed::Unread,
        Live::Read(volume) if volume.metadata.uid == observed.volume.metadata.uid => &**volume,
        Live::Read(_) | Live::Gone => return Confirmed::No,
    };
    let Some(reference) = volume.spec.claim_ref.as_ref().filter(|reference| reference.uid.is_some()) else {
        return Confirmed::No;
    };
    // The claim was read under the name that the cached volume has.
    if observed.volume.spec.claim_ref.as_ref() != Some(reference) {
        return Confirmed::No;
    }
    let has_it = |claim: &PersistentVolumeClaim| {
        let named = &claim.spec.volume_name;
        reference.uid == Some(claim.metadata.uid) && (named.is_empty() || *named == *volume.metadata.name())
    };
    match &observed.live_claim {
        Live::Unread => Confirmed::Unread,
        Live::Read(claim) if has_it(claim) => Confirmed::No,
        Live::Read(_) | Live::Gone => Confirmed::Released(volume),
    }
}

fn ask(volume: &PersistentVolume) -> Next {
    let reason = Reason::ToReclaim { policy: volume.spec.reclaim_policy.clone() };
    Next::Ask(LiveRead { step: "read the volume and its claim", reason })
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
        Next::Execute(fail(volume, VOLUME_FAILED_DELETE, why, reason))
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

/// Upstream: `recycleVolumeOperation`.
fn recycle(observed: &ObservedVolume) -> Next {
    let volume = match confirmed(observed) {
        Confirmed::Unread => return ask(&observed.volume),
        Confirmed::No => return Next::Execute(Plan::nothing(Reason::NotReleased)),
        Confirmed::Released(volume) => volume,
    };
    // A claim of the name is another one, and the pods are its pods.
    let has_namesake = matches!(observed.live_claim, Live::Read(_));
    let pods = observed.pods.as_deref().unwrap_or_default();
    if !pods.is_empty() && !has_namesake {
        let names: Vec<_> = pods.iter().map(ToString::to_string).collect();
        let message = format!("Volume is used by pods: {}", names.join(","));
        let event = PlannedEvent::normal(volume.reference(), VOLUME_FAILED_RECYCLE, message);
        let reason = Reason::UsedByPods { pods: names };
        return Next::Execute(Plan { again: Again::Later, ..Plan::of_volume(volume, vec![Step::Tell(event)], reason) });
    }
    let why = "No recycler plugin found for the volume!".to_owned();
    let reason = Reason::CannotRecycle { why: why.clone() };
    Next::Execute(fail(volume, VOLUME_FAILED_RECYCLE, why, reason))
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
