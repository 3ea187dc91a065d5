//! Services and the pods behind them: what all share that list the addresses of a Service, in whatever kind of object.
//!
//! Reading order: [`pod`] and [`service`] (the views, and what follows from both) → [`select`] (caches and indices) →
//! [`changes`] (whom a change concerns) → [`trigger_time_tracker`] (when what is written happened) → [`address`],
//! [`subset`] and [`slice`](mod@slice) (addresses in Endpoints and in EndpointSlices) → [`slice_plan`] and
//! [`slice_writer`] (writes of slices) → [`endpointslice_tracker`] (own writes of slices) → [`metrics`]. Left out: the objects that list the
//! addresses, and the decision about them.

pub mod address;
pub mod changes;
pub mod endpointslice_tracker;
pub mod metrics;
pub mod pod;
pub mod select;
pub mod service;
pub mod slice;
pub mod slice_plan;
pub mod slice_writer;
pub mod subset;
pub mod trigger_time_tracker;

use std::collections::BTreeMap;

use crate::api::intern::Text;
use crate::api::labels::Labels;

/// When what the last write of an object answers to happened: the key of an annotation.
pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// On Endpoints that are the lock of an election: the key of an annotation.
pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// On an object that lists pods: its Service has no IP of its own.
pub const HEADLESS: &str = "service.kubernetes.io/headless";

/// The labels that change so that an object has those that it should have, and what they become: none where one goes.
pub fn label_changes(own: &Labels, wanted: &Labels) -> BTreeMap<Text, Option<Text>> {
    let set = wanted.iter().filter(|(key, value)| own.get(key) != Some(value));
    let set = set.map(|(key, value)| (Text::new(key), Some(Text::new(value))));
    let removed = own.iter().filter(|(key, _)| wanted.get(key).is_none()).map(|(key, _)| (Text::new(key), None));
    set.chain(removed).collect()
}
