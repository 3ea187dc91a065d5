//! What a sync of a volume writes: its phase, the end of a binding that its claim does not share, and its reclaim.
//!
//! Upstream: `syncVolume`.

use shared::api::object::Kind;
use shared::working::decisions::LiveRead;
use shared::working::events::PlannedEvent;

use super::claim::FAILED_BINDING;
use super::edits::{Step, VolumeEdit};
use super::reasons::RecyclerState;
use super::released::unbind;
use super::{Again, Next, Plan, Reason, migration, reclaim};
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::recycler::Recyclers;
use crate::objects::volume::{ClaimReference, PersistentVolume};
use crate::observe::{Live, ObservedVolume, Recycler};
use crate::status::{Phase, VolumeStatus};

const VOLUME_MISMATCH: &str = "VolumeMismatch";

/// A pod that empties the volume is left alone only while the volume waits for it.
pub fn plan(observed: &ObservedVolume, recyclers: &Recyclers) -> Next {
    let goes_on = |plan: &Plan| matches!(plan.reason, Reason::Recycler { pod: _, state: RecyclerState::Running });
    match (decide(observed, recyclers), &observed.recycler) {
        (Next::Execute(mut plan), Recycler::Own { id, .. }) if !goes_on(&plan) => {
            plan.steps.insert(0, Step::EndRecycler(id.clone()));
            Next::Execute(plan)
        }
        (next, _) => next,
    }
}

fn decide(observed: &ObservedVolume, recyclers: &Recyclers) -> Next {
    let volume = &*observed.volume;
    if let Some(edit) = migration::of_volume(volume) {
        return Next::Execute(Plan::of_volume(volume, vec![Step::Volume(edit)], Reason::Migration));
    }
    let Some(reference) = &volume.spec.claim_ref else {
        return Next::Execute(unused(observed));
    };
    let key: Box<str> = reference.key.as_str().into();
    if reference.uid.is_none() {
        return Next::Execute(enter(volume, Phase::Available, Reason::Reserved { claim: key }));
    }
    match claim_of(observed, reference) {
        Claim::NotSeen => Next::Ask(LiveRead { step: "read the claim", reason: Reason::ClaimNotSeen { claim: key } }),
        Claim::Gone => give_back(observed, recyclers, Reason::ClaimGone { claim: key }),
        Claim::Is(claim) if claim.spec.volume_name.is_empty() => Next::Execute(pending(volume, claim)),
        Claim::Is(claim) if claim.spec.volume_name == *volume.metadata.name() => {
            Next::Execute(enter(volume, Phase::Bound, Reason::BoundToClaim { claim: key }))
        }
        Claim::Is(claim) => {
            let reason = Reason::ClaimBoundElsewhere { claim: key, volume: claim.spec.volume_name.clone() };
            let is_provisioned = volume.metadata.annotations.provisioned_by.is_some();
            if is_provisioned && volume.spec.reclaim_policy == "Delete" {
                give_back(observed, recyclers, reason)
            } else {
                Next::Execute(unbind(volume, reason))
            }
        }
    }
}

fn enter(volume: &PersistentVolume, phase: Phase, reason: Reason) -> Plan {
    let status = VolumeStatus::new(volume, phase, "").map(|status| Step::Volume(VolumeEdit::Status(status)));
    Plan::of_volume(volume, status.into_iter().collect(), reason)
}

/// A volume that had a claim before etcd was restored may have its data, so people are told.
fn unused(ObservedVolume { volume, before_restore, .. }: &ObservedVolume) -> Plan {
    let Some(claim) = before_restore else { return enter(volume, Phase::Available, Reason::Unused) };
    let message = format!(
        "Claim {:?} had this volume before etcd was restored from a backup. No other claim gets it.",
        claim.as_str()
    );
    let event = PlannedEvent::warning(volume.reference(), FAILED_BINDING, message);
    let mut plan = enter(volume, Phase::Available, Reason::BeforeRestore { claim: claim.as_str().into() });
    plan.steps.push(Step::Tell(event));
    plan
}

enum Claim<'a> {
    NotSeen,
    Gone,
    Is(&'a PersistentVolumeClaim),
}

/// The claim of the volume, by the apiserver's word if it was asked. A cache may not have it yet, or still have another
/// one of its name; by either alone a volume in use would be given back.
fn claim_of<'a>(observed: &'a ObservedVolume, reference: &ClaimReference) -> Claim<'a> {
    let is_it = |claim: &&PersistentVolumeClaim| reference.uid == Some(claim.metadata.uid);
    match (&observed.live_claim, &observed.claim) {
        (Live::Read(claim), _) => Some(&**claim).filter(is_it).map_or(Claim::Gone, Claim::Is),
        (Live::Gone, _) => Claim::Gone,
        (Live::Unread, Some(claim)) => Some(&**claim).filter(is_it).map_or(Claim::NotSeen, Claim::Is),
        (Live::Unread, None) if observed.volume.is_given_back() => Claim::Gone,
        (Live::Unread, None) => Claim::NotSeen,
    }
}

/// A volume that is known to be without its claim is reclaimed; another one becomes known to be that at first.
fn give_back(observed: &ObservedVolume, recyclers: &Recyclers, reason: Reason) -> Next {
    let volume = &*observed.volume;
    if volume.is_given_back() {
        reclaim::plan(observed, recyclers)
    } else {
        Next::Execute(enter(volume, Phase::Released, reason))
    }
}

/// The claim's sync goes on with the binding, unless the claim can never have this volume.
fn pending(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Plan {
    let key = claim.metadata.key.clone();
    if volume.volume_mode() == claim.volume_mode() {
        let reason = Reason::ClaimIsPending { claim: key.as_str().into() };
        return Plan { steps: vec![Step::SyncClaim(key)], ..Plan::nothing(reason) };
    }
    let to_volume = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} due to incompatible volumeMode.",
        key.name()
    );
    let to_claim = format!(
        "Cannot bind PersistentVolume {:?} to requested PersistentVolumeClaim due to incompatible volumeMode.",
        volume.metadata.name()
    );
    let events = [(volume.reference(), to_volume), (claim.reference(), to_claim)];
    let tell = events.map(|(about, message)| Step::Tell(PlannedEvent::warning(about, VOLUME_MISMATCH, message)));
    Plan {
        again: Again::Later,
        ..Plan::of_volume(volume, tell.into(), Reason::OtherVolumeMode { claim: key.as_str().into() })
    }
}
