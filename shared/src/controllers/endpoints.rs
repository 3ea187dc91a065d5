//! Services and their pods: code of the controllers that list a Service's addresses in Endpoints or EndpointSlices.
//!
//! Reading order: [`pod`] and [`service`] (the views) → [`select`] (caches and indices) → [`changes`] (which Services a
//! change concerns) → [`trigger_time_tracker`] (when the change happened) → [`address`], [`subset`] and
//! [`slice`](mod@slice) (addresses in Endpoints and in EndpointSlices) → [`slice_plan`] and [`slice_writer`] (writes of
//! slices) → [`endpointslice_tracker`] (own writes of slices) → [`metrics`].

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

/// Annotation: the time of the change that led to the last write.
pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Annotation of Endpoints that are the lock of an election.
pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// Label of an object whose Service has no cluster IP.
pub const HEADLESS: &str = "service.kubernetes.io/headless";

/// The labels to change so that an object has the wanted ones, with their new values; `None` removes a label.
pub fn label_changes(own: &Labels, wanted: &Labels) -> BTreeMap<Text, Option<Text>> {
    let set = wanted.iter().filter(|(key, value)| own.get(key) != Some(value));
    let set = set.map(|(key, value)| (Text::new(key), Some(Text::new(value))));
    let removed = own.iter().filter(|(key, _)| wanted.get(key).is_none()).map(|(key, _)| (Text::new(key), None));
    set.chain(removed).collect()
}
