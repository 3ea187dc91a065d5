//! What happens to a volume that is given back, whatever its policy: it is asked for once more, fails, or is free again.

use shared::api::object::Kind;
use shared::working::decisions::LiveRead;
use shared::working::events::PlannedEvent;

use super::edits::{Step, VolumeEdit};
use super::{Again, Next, Plan, Reason};
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::volume::PersistentVolume;
use crate::observe::{Live, ObservedVolume};
use crate::status::{Phase, VolumeStatus};

/// Upstream: `updateVolumePhaseWithEvent`.
pub(super) fn fail(volume: &PersistentVolume, event: &'static str, why: String, reason: Reason) -> Plan {
    let steps = VolumeStatus::new(volume, Phase::Failed, why.clone()).map(|status| {
        let event = PlannedEvent::warning(volume.reference(), event, why);
        [Step::Volume(VolumeEdit::Status(status)), Step::Tell(event)]
    });
    Plan { again: Again::Later, ..Plan::of_volume(volume, steps.into_iter().flatten().collect(), reason) }
}

/// What the apiserver has of a volume that is to be reclaimed.
pub(super) enum Confirmed<'a> {
    Unread,
    No,
    Released(&'a PersistentVolume),
}

/// Upstream: `isVolumeReleased`.
pub(super) fn confirmed(observed: &ObservedVolume) -> Confirmed<'_> {
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

pub(super) fn ask(volume: &PersistentVolume) -> Next {
    let reason = Reason::ToReclaim { policy: volume.spec.reclaim_policy.clone() };
    Next::Ask(LiveRead { step: "read the volume and its claim", reason })
}

/// Upstream: `unbindVolume`.
pub(super) fn unbind(volume: &PersistentVolume, reason: Reason) -> Plan {
    let edit = VolumeEdit::Unbind { was_bound_by_controller: volume.is_bound_by_controller() };
    let status = VolumeStatus::new(volume, Phase::Available, "").map(VolumeEdit::Status);
    Plan::of_volume(volume, std::iter::once(edit).chain(status).map(Step::Volume).collect(), reason)
}
