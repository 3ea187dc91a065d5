//! A volume is emptied by a pod before another claim may get it.
//!
//! A pod counts only if this process has made it: anybody who may create pods could have made one of its name, and the
//! next claim would get the data.
//!
//! Upstream: `recycleVolumeOperation`, and `pkg/volume/util/recyclerclient/recycler_client.go`.

use shared::api::object::{Key, Kind};
use shared::api::pod::Phase as PodPhase;
use shared::working::events::{EventType, PlannedEvent};

use super::edits::{NewRecycler, Step};
use super::reasons::RecyclerState;
use super::released::{Confirmed, ask, confirmed, fail, unbind};
use super::{Again, Next, Plan, Reason};
use crate::objects::recycler::{PodEvent, PodId, RecyclerPod, Recyclers};
use crate::objects::volume::PersistentVolume;
use crate::observe::{Live, ObservedVolume, Recycler};
use crate::status::Phase;

pub const VOLUME_FAILED_RECYCLE: &str = "VolumeFailedRecycle";
const VOLUME_RECYCLED: &str = "VolumeRecycled";
const RECYCLER_POD: &str = "RecyclerPod";

/// A pod that is not told to go on is ended: see [`super::volume::plan`].
pub(super) fn plan(observed: &ObservedVolume, recyclers: &Recyclers) -> Next {
    if let Recycler::Own { id: _, pod: Some(pod), events } = &observed.recycler
        && !pod.status.phase.is_terminal()
    {
        let steps = relayed(&observed.volume, events).collect();
        let plan = Plan::of_volume(&observed.volume, steps, recycler(&pod.metadata.key, RecyclerState::Running));
        return Next::Execute(Plan { again: Again::Later, ..plan });
    }
    let volume = match confirmed(observed) {
        Confirmed::Unread => return ask(&observed.volume),
        Confirmed::Released(volume) if volume.spec.reclaim_policy == "Recycle" => volume,
        Confirmed::Released(_) | Confirmed::No => return Next::Execute(Plan::nothing(Reason::NotReleased)),
    };
    Next::Execute(match &observed.recycler {
        Recycler::None => begin(observed, volume, recyclers),
        Recycler::Unknown(pod) => {
            let mut plan = failed(volume, "old recycler pod found, will retry later");
            if !pod.metadata.is_being_deleted() {
                plan.steps.insert(0, Step::EndRecycler(pod.id()));
            }
            plan
        }
        Recycler::Own { pod: None, .. } => failed(volume, "failed to recycle volume: recycler pod was deleted"),
        Recycler::Own { id: _, pod: Some(pod), events } => {
            let mut plan = ended(volume, pod);
            plan.steps.splice(0..0, relayed(volume, events));
            plan
        }
    })
}

/// The end of the pod that emptied a volume that is gone.
pub fn gone(pod: PodId) -> Plan {
    let reason = recycler(&pod.key, RecyclerState::Orphaned);
    Plan { steps: vec![Step::EndRecycler(pod)], ..Plan::nothing(reason) }
}

fn recycler(pod: &Key, state: RecyclerState) -> Reason {
    Reason::Recycler { pod: pod.as_str().into(), state }
}

fn failed(volume: &PersistentVolume, why: &str) -> Plan {
    let why = format!("Recycle failed: {why}");
    fail(volume, VOLUME_FAILED_RECYCLE, why.clone(), Reason::CannotRecycle { why })
}

/// What others say about the pod is told of the volume, too.
fn relayed(volume: &PersistentVolume, events: &[impl AsRef<PodEvent>]) -> impl Iterator<Item = Step> {
    events.iter().map(|event| {
        let event = event.as_ref();
        let kind = if event.is_warning() { EventType::Warning } else { EventType::Normal };
        let message = format!("Recycler pod: {}", event.message);
        let tell = PlannedEvent { about: volume.reference(), kind, reason: RECYCLER_POD, message };
        Step::Relay { event: event.metadata.uid, tell }
    })
}

/// Upstream: `waitForPod`.
fn ended(volume: &PersistentVolume, pod: &RecyclerPod) -> Plan {
    if pod.status.phase != PodPhase::Succeeded {
        let message = pod.status.message.as_deref().filter(|message| !message.is_empty());
        let message = message.unwrap_or("pod failed, pod.Status.Message unknown");
        return failed(volume, &format!("failed to recycle volume: {message}"));
    }
    let event = PlannedEvent::normal(volume.reference(), VOLUME_RECYCLED, "Volume recycled".to_owned());
    let mut plan = unbind(volume, recycler(&pod.metadata.key, RecyclerState::Succeeded));
    plan.steps.insert(0, Step::Tell(event));
    plan
}

fn begin(observed: &ObservedVolume, volume: &PersistentVolume, recyclers: &Recyclers) -> Plan {
    // A claim of the name is another one, and the pods are its pods.
    let has_namesake = matches!(observed.live_claim, Live::Read(_));
    let pods = observed.pods.as_deref().unwrap_or_default();
    if !pods.is_empty() && !has_namesake {
        let names: Vec<_> = pods.iter().map(ToString::to_string).collect();
        let message = format!("Volume is used by pods: {}", names.join(","));
        let event = PlannedEvent::normal(volume.reference(), VOLUME_FAILED_RECYCLE, message);
        let reason = Reason::UsedByPods { pods: names };
        return Plan { again: Again::Later, ..Plan::of_volume(volume, vec![Step::Tell(event)], reason) };
    }
    let Some((key, body)) = recyclers.pod(volume) else {
        let why = "No recycler plugin found for the volume!".to_owned();
        return fail(volume, VOLUME_FAILED_RECYCLE, why.clone(), Reason::CannotRecycle { why });
    };
    let has_failed = *volume.phase() == Phase::Failed.as_str();
    let reason = recycler(&key, RecyclerState::New);
    let step = Step::CreateRecycler(NewRecycler { key, body, has_failed });
    Plan { again: Again::Later, ..Plan::of_volume(volume, vec![step], reason) }
}
