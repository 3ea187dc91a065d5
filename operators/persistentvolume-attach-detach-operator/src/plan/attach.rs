//! What happens where pods have the volume.
//!
//! Upstream: `attachDesiredVolumes`, `pkg/controller/volume/attachdetach/reconciler/reconciler.go`, and `Attach`,
//! `pkg/volume/csi/csi_attacher.go`.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use shared::api::intern::Text;

use super::{ATTACHER_TIMEOUT, Act, Config, PlaceReason, State, Step, messages};
use crate::memory::{Remembered, Report};
use crate::objects::VolumeAttachment;
use crate::objects::volume::{Plugin, Spec, VolumeName};
use crate::observe::{Observed, Place, Use};

/// The same volume on the other nodes.
pub(super) struct Others<'a> {
    pub(super) observed: &'a Observed,
    /// The steps for the nodes on which no pod has it.
    pub(super) leaving: &'a [Option<Step>],
}

/// Why the volume cannot be attached to a node yet.
enum Blocked<'a> {
    /// It leaves another node, or is about to be attached to it.
    Soon(PlaceReason),
    /// Other nodes have it, and may keep it.
    By(Vec<&'a Place>),
}

pub(super) fn plan(place: &Place, others: &Others<'_>, config: Config) -> Step {
    let mut remember = Remembered { unneeded: None, ..place.remembered.clone() };
    let is_ending = place.is_deleted();
    let syncs_node = remember.report != Report::Free && !is_ending;
    if !is_ending {
        (remember.report, remember.deleted) = (Report::Free, None);
    }
    let Some(spec) = place.wanting().next().map(|used| &used.spec) else {
        let reason = PlaceReason::Kept { pods: names(place.uses.iter()) };
        return Step { syncs_node, ..Step::wait(place, remember, reason) };
    };
    let volume = &others.observed.volume;
    let step = match (place.attach_state(volume), &place.attachment) {
        (State::Attached, attachment) => attached(place, spec, attachment.as_deref(), &remember, others),
        (State::Reported, _) if !config.verifies => attached(place, spec, None, &remember, others),
        (State::Attaching, Some(attachment)) => attaching(place, spec, attachment, remember, others),
        (State::Detaching, Some(attachment)) => being_deleted(place, spec, attachment, remember),
        (State::Detached | State::Reported | State::Attaching | State::Detaching, _) => {
            begin(place, spec, remember, others)
        }
    };
    // What is not attached must not be reported.
    let is_reported = place.state.as_ref().is_some_and(|node| node.reports(volume));
    let unreports = is_reported && !matches!(step.reason, PlaceReason::Attached { .. });
    Step { syncs_node: syncs_node || step.syncs_node || unreports, ..step }
}

/// Upstream: the end of `GenerateAttachVolumeFunc`, `pkg/volume/util/operationexecutor/operation_generator.go`.
fn attached(
    place: &Place,
    spec: &Spec,
    attachment: Option<&VolumeAttachment>,
    remember: &Remembered,
    others: &Others<'_>,
) -> Step {
    let is_reported = place.state.as_ref().is_some_and(|node| node.reports(&others.observed.volume));
    let Remembered { is_requested, is_granted, announced, .. } = *remember;
    let uid = attachment.map(|attachment| attachment.metadata.uid);
    let is_news = uid.is_some() && uid != announced && !is_reported;
    let announced = if is_reported { None } else { uid };
    let is_granted = is_granted && !is_reported;
    let remember = Remembered { is_requested, is_granted, announced, ..Remembered::default() };
    let mut step = Step::wait(place, remember, PlaceReason::Attached { pods: names(place.wanting()) });
    step.syncs_node = !is_reported;
    if is_news {
        step.events = messages::attached(place, spec);
    }
    step
}

/// Upstream: `waitForVolumeAttachmentWithLister`. Instead of polling, this waits for the attachment to change. Each failure
/// that the driver's attacher reports becomes one event.
fn attaching(
    place: &Place,
    spec: &Spec,
    attachment: &VolumeAttachment,
    mut remember: Remembered,
    others: &Others<'_>,
) -> Step {
    let Plugin::Csi { driver, handle } = others.observed.volume.plugin() else {
        return Step::wait(place, remember, PlaceReason::ForeignPlugin);
    };
    if let Some(error) = &attachment.attach_error {
        let is_news = remember.told.as_ref() != Some(error);
        remember.told = Some(error.clone());
        remember.unanswered = None;
        let mut step = Step::wait(place, remember, PlaceReason::AttachFailed { error: error.message.to_string() });
        if is_news {
            step.events = messages::attach_failed(place, spec, &error.message);
        }
        return step;
    }
    remember.told = None;
    let late = || messages::timed_out(driver, handle);
    let reason = PlaceReason::WaitsForAttacher { driver: driver.to_owned() };
    answer_awaited(place, spec, remember, reason, late)
}

/// The VolumeAttachment that is needed is being deleted. It has to be gone before another one is created.
fn being_deleted(place: &Place, spec: &Spec, attachment: &VolumeAttachment, remember: Remembered) -> Step {
    if !attachment.metadata.is_being_deleted() {
        // The request of its deletion may have failed, and what it has begun must come to an end.
        let attachment = (attachment.metadata.key.clone(), attachment.metadata.uid);
        let act = Act::Detach { attachment: attachment.0, uid: attachment.1, forced: None };
        return Step { act, ..Step::wait(place, remember, PlaceReason::BeingDeleted) };
    }
    answer_awaited(place, spec, remember, PlaceReason::BeingDeleted, || messages::BEING_DELETED.to_owned())
}

/// Waits for the driver's attacher, and posts an event each time it has not answered for too long.
fn answer_awaited(
    place: &Place,
    spec: &Spec,
    mut remember: Remembered,
    reason: PlaceReason,
    late: impl FnOnce() -> String,
) -> Step {
    let mut unanswered = remember.unanswered.unwrap_or_default();
    let mut events = Vec::new();
    if unanswered >= ATTACHER_TIMEOUT {
        events = messages::attach_failed(place, spec, &late());
        unanswered = Duration::ZERO;
    }
    remember.unanswered = Some(unanswered);
    let left = Some(ATTACHER_TIMEOUT.saturating_sub(unanswered));
    Step { events, left, ..Step::wait(place, remember, reason) }
}

/// Attaches the volume, if no other node has it or may have it.
fn begin(place: &Place, spec: &Arc<Spec>, remember: Remembered, others: &Others<'_>) -> Step {
    if !place.wanting().all(|used| used.spec.allows_multi_attach)
        && let Some(blocked) = others.blocked(place)
    {
        return match blocked {
            Blocked::Soon(reason) => Step::wait(place, remember, reason),
            Blocked::By(others) => refused(place, spec, &others, remember),
        };
    }
    let pods = names(place.wanting());
    let reason = PlaceReason::Wanted { pods };
    match (others.observed.volume.plugin(), others.observed.volume.attachment(&place.node)) {
        (Plugin::Csi { driver, handle: _ }, Some(attachment)) => {
            let remember = Remembered { unanswered: Some(Duration::ZERO), is_requested: true, ..Remembered::default() };
            let act = Act::Attach {
                attachment,
                driver: Text::new(driver),
                spec: Arc::clone(spec),
                pods: place.wanting().map(|used| used.pod.clone()).collect(),
            };
            Step { act, ..Step::wait(place, remember, reason) }
        }
        (Plugin::OfNode(_), _) => {
            let remember = Remembered { is_granted: true, ..Remembered::default() };
            let events = messages::attached(place, spec);
            Step { act: Act::Grant, syncs_node: true, events, ..Step::wait(place, remember, reason) }
        }
        (Plugin::Csi { .. } | Plugin::Other, _) => Step::wait(place, remember, PlaceReason::ForeignPlugin),
    }
}

/// Upstream: `reportMultiAttachError`. The event is posted once, until no pod of the node needs the volume any more.
fn refused(place: &Place, spec: &Spec, others: &[&Place], remember: Remembered) -> Step {
    let is_news = !remember.is_refused;
    let nodes = others.iter().map(|other| other.node.clone()).collect();
    let pods = names(others.iter().flat_map(|other| &other.uses));
    let reason = PlaceReason::UsedElsewhere { nodes, pods };
    let mut step = Step::wait(place, Remembered { is_refused: true, ..remember }, reason);
    if is_news {
        step.events = messages::multi_attach(place, spec, others);
    }
    step
}

impl Others<'_> {
    fn blocked(&self, place: &Place) -> Option<Blocked<'_>> {
        let Self { observed: Observed { volume, places, at: _ }, leaving } = self;
        let others = places.iter().zip(*leaving).filter(|(other, _)| other.node != place.node);
        let (mut soon, mut having) = (None, Vec::new());
        for (other, leaving) in others {
            let is_wanted = other.wanting().next().is_some();
            let reason = match other.attach_state(volume) {
                State::Detached if is_wanted && precedence(other, volume) > precedence(place, volume) => {
                    PlaceReason::OtherIsFirst { node: other.node.clone() }
                }
                State::Detached => continue,
                State::Reported if is_wanted && precedence(other, volume) < precedence(place, volume) => continue,
                State::Attaching if is_wanted && !has_failed(other) => {
                    PlaceReason::OtherIsFirst { node: other.node.clone() }
                }
                _ if leaving.as_ref().is_some_and(|step| step.reason.leaves()) => {
                    PlaceReason::WaitsForDetach { node: other.node.clone() }
                }
                State::Reported | State::Attaching | State::Attached | State::Detaching => {
                    having.push(other);
                    continue;
                }
            };
            soon = soon.or(Some(Blocked::Soon(reason)));
        }
        if having.is_empty() { soon } else { Some(Blocked::By(having)) }
    }
}

fn has_failed(place: &Place) -> bool {
    place.attachment.as_ref().is_some_and(|attachment| attachment.attach_error.is_some())
}

/// Of several nodes that want the volume the first is one that reports it, and then that of the oldest pod.
fn precedence(place: &Place, volume: &VolumeName) -> impl Ord + use<> {
    let oldest = place.wanting().next();
    let created = oldest.and_then(|used| used.created);
    let age = Reverse((created, oldest.map(|used| used.pod.key.clone()), place.node.clone()));
    (place.attach_state(volume) == State::Reported, age)
}

fn names<'a>(uses: impl Iterator<Item = &'a Use>) -> Vec<String> {
    uses.map(|used| used.pod.key.to_string()).collect()
}
