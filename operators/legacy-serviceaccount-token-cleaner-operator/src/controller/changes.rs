//! A change of the first day of tracking leads to a round.

use shared::api::object::Key;
use shared::following::cache::Change;
use shared::working::effect::Effect;
use shared::working::queue::Cause;

use crate::objects::{Tracking, tracking_key};

pub(super) fn round_key() -> Key {
    Key::new("", "round")
}

/// The effects of a change of a ConfigMap with the name of the tracking ConfigMap, in any namespace.
pub(super) fn tracking_changed(change: Change<'_, Tracking>) -> Vec<Effect> {
    let (before, after) = match change {
        Change::Added(new) => (None, new.since),
        Change::Updated { old, new } => (old.since, new.since),
        Change::Deleted(_) => (None, None),
    };
    let is_news = before != after && change.latest().metadata.key == tracking_key();
    is_news.then(|| Effect::Enqueue(round_key(), Cause::Event)).into_iter().collect()
}
