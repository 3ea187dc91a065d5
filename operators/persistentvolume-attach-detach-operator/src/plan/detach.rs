//! What happens where no pod needs the volume.
//!
//! Upstream: the first loop of `reconcile`, `pkg/controller/volume/attachdetach/reconciler/reconciler.go`.

use std::time::Duration;

use super::{Act, Config, Forced, MAX_WAIT_FOR_UNMOUNT, PlaceReason, State, Step};
use crate::memory::{Remembered, Report};
use crate::objects::volume::{Plugin, VolumeName};
use crate::observe::Place;

/// When a node is read again that uses or reports a volume by a live read and not by the cache.
const RECHECK: Duration = Duration::from_secs(2);

/// Whether this step may be taken only if a live read shows that the node does not use the volume again.
pub(super) fn needs_live_read(place: &Place, step: Option<&Step>) -> bool {
    let deletes = matches!(step, Some(Step { act: Act::Detach { forced: None, .. }, .. }));
    deletes && place.is_withdrawn() && place.live.is_none()
}

/// The step for a node on which no pod has the volume; none if one has.
pub(super) fn plan(place: &Place, volume: &VolumeName, config: Config) -> Option<Step> {
    if !place.uses.is_empty() {
        return None;
    }
    let state = place.attach_state(volume);
    if state == State::Detached {
        return Some(Step::wait(place, Remembered::default(), PlaceReason::Unneeded));
    }
    if volume.plugin() == Plugin::Other {
        return Some(Step::wait(place, Remembered::default(), PlaceReason::ForeignPlugin));
    }
    let unneeded = place.remembered.unneeded.unwrap_or_default();
    let Remembered { report, is_requested, deleted, .. } = place.remembered;
    let remember = Remembered { unneeded: Some(unneeded), report, is_requested, deleted, ..Remembered::default() };
    let forced = forced(place, unneeded, config);
    if state == State::Detaching {
        return Some(finish(place, remember, forced));
    }
    if is_in_use(place, volume) && forced.is_none() {
        return Some(mounted(place, volume, remember, left_until_forced(place, unneeded, config)));
    }
    Some(match (report, &place.attachment) {
        (Report::Free, _) => Step {
            act: Act::Withdraw,
            syncs_node: true,
            ..Step::wait(
                place,
                Remembered { report: Report::Withdrawn, ..remember },
                forced.map_or(PlaceReason::Unmounted, PlaceReason::Forced),
            )
        },
        // A cache that is behind does not show that the status was written before, or by somebody else.
        (Report::Acknowledged, Some(_)) if forced.is_none() && place.live.is_some_and(|live| live.is_reported) => {
            Step { left: Some(RECHECK), ..Step::wait(place, remember, PlaceReason::Withdrawing) }
        }
        (Report::Acknowledged, Some(attachment)) => Step {
            act: Act::Detach { attachment: attachment.metadata.key.clone(), uid: attachment.metadata.uid, forced },
            ..Step::wait(
                place,
                Remembered { deleted: Some(attachment.metadata.uid), ..remember },
                forced.map_or(PlaceReason::Unmounted, PlaceReason::Forced),
            )
        },
        (Report::Withdrawn | Report::Acknowledged, _) => Step::wait(place, remember, PlaceReason::Withdrawing),
    })
}

/// Waits until the node has unmounted the volume, or its time is over.
fn mounted(place: &Place, volume: &VolumeName, remember: Remembered, until_forced: Option<Duration>) -> Step {
    let is_forced_later = until_forced.is_some();
    let reason = if place.state.is_some() {
        PlaceReason::Mounted { is_forced_later }
    } else {
        PlaceReason::NodeGone { is_forced_later }
    };
    // A cache that is behind the live read may never show the change that has happened since.
    let recheck = (!is_used_in_cache(place, volume)).then_some(RECHECK);
    let left = until_forced.into_iter().chain(recheck).min();
    Step { left, ..Step::wait(place, remember, reason) }
}

/// The rest of a detach that was requested.
fn finish(place: &Place, remember: Remembered, forced: Option<Forced>) -> Step {
    let attachment = place.attachment.as_ref();
    let error = attachment.and_then(|attachment| attachment.detach_error.as_ref());
    let error = error.map(|error| error.message.to_string());
    let wait = Step::wait(place, remember, PlaceReason::Detaching { error });
    match attachment.filter(|attachment| !attachment.metadata.is_being_deleted()) {
        // The request may have failed.
        Some(attachment) => Step {
            act: Act::Detach { attachment: attachment.metadata.key.clone(), uid: attachment.metadata.uid, forced },
            ..wait
        },
        None => wait,
    }
}

/// Whether the node has the volume mounted, as far as is known.
fn is_in_use(place: &Place, volume: &VolumeName) -> bool {
    is_used_in_cache(place, volume) || place.live.is_some_and(|live| live.is_in_use)
}

/// A node that does not exist may have the volume mounted, unless its last state said that it had not.
fn is_used_in_cache(place: &Place, volume: &VolumeName) -> bool {
    place.state.as_ref().map_or(!place.is_left_unused, |node| node.uses(volume))
}

/// Why the volume is detached from its node even if it is mounted.
fn forced(place: &Place, unneeded: Duration, config: Config) -> Option<Forced> {
    let is_timeout = config.forces_on_timeout && !is_ready(place) && unneeded >= MAX_WAIT_FOR_UNMOUNT;
    let is_out_of_service = place.state.as_ref().is_some_and(|node| node.is_out_of_service);
    if is_timeout { Some(Forced::Timeout) } else { is_out_of_service.then_some(Forced::OutOfService) }
}

fn is_ready(place: &Place) -> bool {
    place.state.as_ref().is_some_and(|node| node.is_ready)
}

/// The time until the volume is detached from a node that is not ready.
fn left_until_forced(place: &Place, unneeded: Duration, config: Config) -> Option<Duration> {
    let may_force = config.forces_on_timeout && !is_ready(place);
    may_force.then(|| MAX_WAIT_FOR_UNMOUNT.saturating_sub(unneeded))
}
