//! What a sync of a claim writes: its binding, or the request for a volume.
//!
//! Upstream: `syncClaim`.

use shared::api::intern::Text;
use shared::api::object::Kind;
use shared::working::decisions::LiveRead;
use shared::working::events::PlannedEvent;

use super::edits::{Binding, ClaimEdit, Step, Target, VolumeEdit};
use super::fit::{Wanted, unsatisfied};
use super::{Again, Config, Next, Plan, Reason, migration, provision};
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::volume::PersistentVolume;
use crate::observe::{Candidate, Holder, Live, Observed};
use crate::status::{ClaimStatus, Phase, VolumeStatus};

/// Upstream: `pkg/controller/volume/events/event.go`, as are those of the other plans.
pub(super) const FAILED_BINDING: &str = "FailedBinding";
const VOLUME_MISMATCH: &str = "VolumeMismatch";
const WAIT_FOR_FIRST_CONSUMER: &str = "WaitForFirstConsumer";
const WAIT_FOR_POD_SCHEDULED: &str = "WaitForPodScheduled";
const CLAIM_LOST: &str = "ClaimLost";
const CLAIM_MISBOUND: &str = "ClaimMisbound";

pub fn plan(observed: &Observed, config: Config) -> Next {
    let claim = &*observed.claim;
    if let Some(driver) = migration::of_claim(claim) {
        return Next::Execute(Plan::of_claim(claim, vec![Step::Claim(ClaimEdit::Migrate(driver))], Reason::Migration));
    }
    if claim.is_bind_completed() {
        return bound(observed);
    }
    Next::Execute(if claim.spec.volume_name.is_empty() { unbound(observed, config) } else { names_volume(observed) })
}

/// The claim stays without a volume: it is told why, and looked at again.
fn pending(claim: &PersistentVolumeClaim, event: Option<PlannedEvent>, reason: Reason) -> Plan {
    let status = ClaimStatus::without_volume(claim, Phase::Pending).map(ClaimEdit::Status);
    let steps = event.map(Step::Tell).into_iter().chain(status.map(Step::Claim));
    Plan { again: Again::Later, ..Plan::of_claim(claim, steps.collect(), reason) }
}

/// Upstream: `syncUnboundClaim` of a claim that names no volume.
fn unbound(observed: &Observed, config: Config) -> Plan {
    let Observed { claim, class, default_class, named: _, candidates, pods, live_volume: _ } = observed;
    let claim = &**claim;
    let waits = match class.as_ref().map(|class| class.volume_binding_mode.as_deref()) {
        None => false,
        Some(None) => return Plan::retry(Reason::InvalidClass { class: claim.class().clone() }),
        Some(Some(mode)) => mode == "WaitForFirstConsumer",
    };
    let wanted = match Wanted::new(claim, waits) {
        Ok(wanted) => wanted,
        Err(error) => return Plan::retry(Reason::InvalidSelector { why: error.to_string() }),
    };
    if let Some(volume) = wanted.best(candidates) {
        let name = Text::new(volume.metadata.name());
        let reason = if volume.is_bound_to(claim) {
            Reason::BoundToIt { volume: name }
        } else {
            let (requested, size) = (claim.requested().to_string(), volume.capacity().to_string());
            Reason::SmallestThatFits { volume: name, requested, size }
        };
        return bind(volume, claim, reason);
    }
    if let Some(class) = default_class {
        let step = Step::Claim(ClaimEdit::Class(class.clone()));
        return Plan::of_claim(claim, vec![step], Reason::DefaultClass { class: class.clone() });
    }
    let node = claim.metadata.annotations.selected_node.as_ref();
    if waits && node.is_none() {
        return waits_for_consumer(claim, pods);
    }
    let nearest = wanted.nearest(candidates);
    if !claim.class().is_empty() {
        return provision::plan(claim, class.as_deref(), nearest, config);
    }
    let message = "no persistent volumes available for this claim and no storage class is set".to_owned();
    let event = PlannedEvent::normal(claim.reference(), FAILED_BINDING, message);
    pending(claim, Some(event), Reason::NoClass { nearest })
}

/// Upstream: `emitEventForUnboundDelayBindingClaim`.
fn waits_for_consumer(claim: &PersistentVolumeClaim, pods: &[Text]) -> Plan {
    let (event, message) = match pods {
        [] => (WAIT_FOR_FIRST_CONSUMER, "waiting for first consumer to be created before binding".to_owned()),
        [pod] => (WAIT_FOR_POD_SCHEDULED, format!("waiting for pod {pod} to be scheduled")),
        pods => (WAIT_FOR_POD_SCHEDULED, format!("waiting for pods {} to be scheduled", pods.join(","))),
    };
    let event = PlannedEvent::normal(claim.reference(), event, message);
    pending(claim, Some(event), Reason::WaitsForConsumer { class: claim.class().clone(), pods: pods.to_vec() })
}

/// Upstream: `syncUnboundClaim` of a claim that names a volume.
fn names_volume(Observed { claim, named, .. }: &Observed) -> Plan {
    let (claim, name) = (&**claim, &claim.spec.volume_name);
    let Some(Candidate { volume, held_by }) = named else {
        return pending(claim, None, Reason::NamesMissingVolume { volume: name.clone() });
    };
    if let Some(holder) = held_by {
        return pending(claim, Some(anothers(claim)), held(name, holder));
    }
    match &volume.spec.claim_ref {
        None => match unsatisfied(volume, claim) {
            None => bind(volume, claim, Reason::Named { volume: name.clone() }),
            Some(why) => {
                let message = format!("Cannot bind to requested volume {:?}: {why}", name.as_str());
                let reason = Reason::NamesMisfit { volume: name.clone(), why };
                let event = PlannedEvent::warning(claim.reference(), VOLUME_MISMATCH, message);
                pending(claim, Some(event), reason)
            }
        },
        Some(_) if volume.is_bound_to(claim) => bind(volume, claim, Reason::BoundToIt { volume: name.clone() }),
        Some(other) => {
            let reason = Reason::NamesVolumeOfAnother { volume: name.clone(), claim: other.key.as_str().into() };
            if claim.is_bound_by_controller() {
                // Somebody has removed the annotation that its binding is complete.
                let steps = vec![Step::Tell(anothers(claim))];
                return Plan { again: Again::Retry, ..Plan::of_claim(claim, steps, reason) };
            }
            pending(claim, Some(anothers(claim)), reason)
        }
    }
}

fn held(volume: &Text, holder: &Holder) -> Reason {
    let volume = volume.clone();
    match holder {
        Holder::Bound(claim) => Reason::HeldByAnother { volume, claim: claim.as_str().into() },
        Holder::BeforeRestore(claim) => Reason::HadByAnother { volume, claim: claim.as_str().into() },
    }
}

fn anothers(claim: &PersistentVolumeClaim) -> PlannedEvent {
    let message = format!("volume {:?} already bound to a different claim.", claim.spec.volume_name.as_str());
    PlannedEvent::warning(claim.reference(), FAILED_BINDING, message)
}

/// Upstream: `syncBoundClaim`.
fn bound(Observed { claim, named, live_volume, .. }: &Observed) -> Next {
    let (claim, name) = (&**claim, &claim.spec.volume_name);
    let is_lost = claim.status.phase == Phase::Lost.as_str();
    let lost = |event: &'static str, message: &str, reason: Reason| {
        let status = ClaimStatus::without_volume(claim, Phase::Lost).filter(|_| !is_lost).map(ClaimEdit::Status);
        let Some(status) = status else { return Plan::nothing(reason) };
        let event = PlannedEvent::warning(claim.reference(), event, message.to_owned());
        Plan::of_claim(claim, vec![Step::Claim(status), Step::Tell(event)], reason)
    };
    if name.is_empty() {
        let message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
        return Next::Execute(lost(CLAIM_LOST, message, Reason::LostReference));
    }
    let volume = match (named, live_volume) {
        // Two claims say that the volume without one is theirs: neither gets the data of the other.
        (Some(Candidate { volume: _, held_by: Some(holder) }), _) => {
            let reason = held(name, holder);
            let steps = (!is_lost).then(|| Step::Tell(anothers(claim))).into_iter().collect();
            return Next::Execute(Plan { again: Again::Later, ..Plan::of_claim(claim, steps, reason) });
        }
        (Some(Candidate { volume, held_by: None }), _) => volume,
        (None, Live::Unread) => {
            let reason = Reason::VolumeNotSeen { volume: name.clone() };
            return Next::Ask(LiveRead { step: "read the volume", reason });
        }
        // The cache is behind the volume's creation, and may not show who else has it.
        (None, Live::Read(_)) => {
            let reason = Reason::VolumeNotSeen { volume: name.clone() };
            return Next::Execute(Plan { again: Again::Later, ..Plan::nothing(reason) });
        }
        (None, Live::Gone) => {
            let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
            return Next::Execute(lost(CLAIM_LOST, message, Reason::LostVolume { volume: name.clone() }));
        }
    };
    Next::Execute(match &volume.spec.claim_ref {
        Some(other) if other.uid != Some(claim.metadata.uid) => {
            let message = "Two claims are bound to the same volume, this one is bound incorrectly";
            let reason = Reason::Misbound { volume: name.clone(), claim: other.key.as_str().into() };
            lost(CLAIM_MISBOUND, message, reason)
        }
        Some(_) | None => bind(volume, claim, Reason::Bound { volume: name.clone() }),
    })
}

/// The volume is written first: with it the claim has the volume, whatever happens next.
///
/// Upstream: `bind`.
fn bind(volume: &PersistentVolume, claim: &PersistentVolumeClaim, reason: Reason) -> Plan {
    let name = Text::new(volume.metadata.name());
    let Ok(claim_status) = ClaimStatus::bound(claim, volume) else {
        return Plan::retry(Reason::WithoutCapacity { volume: name });
    };
    let volume_edits = [
        binding(volume, claim).map(VolumeEdit::Bind),
        VolumeStatus::new(volume, Phase::Bound, "").map(VolumeEdit::Status),
    ];
    let claim_edits = [ClaimEdit::bind(claim, &name), claim_status.map(ClaimEdit::Status)];
    let steps: Vec<_> = volume_edits
        .into_iter()
        .flatten()
        .map(Step::Volume)
        .chain(claim_edits.into_iter().flatten().map(Step::Claim))
        .collect();
    if steps.is_empty() {
        return Plan::nothing(Reason::Bound { volume: name });
    }
    Plan { volume: Some(Target::of(&volume.metadata)), ..Plan::of_claim(claim, steps, reason) }
}

/// Upstream: `GetBindVolumeToClaim`.
fn binding(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<Binding> {
    let metadata = &claim.metadata;
    let is_named = volume
        .spec
        .claim_ref
        .as_ref()
        .is_some_and(|reference| reference.key == metadata.key && reference.uid == Some(metadata.uid));
    let by_controller = !volume.is_bound_to(claim) && !volume.is_bound_by_controller();
    let claim = (!is_named).then(|| Target::of(metadata));
    (claim.is_some() || by_controller).then_some(Binding { claim, by_controller })
}
