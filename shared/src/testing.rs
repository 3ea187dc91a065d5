//! Builders and properties for the tests of operators, behind the feature `testing`.
//!
//! A builder makes the JSON that the apiserver would serve and reads it into any view, so every fixture also goes
//! through the view's own reading. A whole operator runs against [`apiserver`], as it is: see [`running`].

pub mod apiserver;
mod objects;
pub mod on_demand;
pub mod properties;
pub mod protobuf;
pub mod readers;
pub mod replicas;
pub mod running;
pub mod slices;

pub use objects::{LARGE_BYTES, ObjectBuilder, args_bytes, enlarged, object, pod, uid};

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::object::Object;
use crate::following::cache::{Cache, Part};

/// The instant at which tests take place: 2026-01-01T12:00:00Z.
pub const NOW: Timestamp = Timestamp::constant(1_767_268_800, 0);

/// This many seconds before [`NOW`].
pub fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW.as_second().saturating_sub(seconds)).unwrap_or(Timestamp::MIN)
}

/// Puts an object into a cache, as its informer would.
pub fn store<T: Object>(cache: &Cache<T>, object: &Arc<T>) {
    cache.apply(Part::default(), object, |_| ());
}

/// Takes an object out of a cache, as its informer would.
pub fn forget<T: Object>(cache: &Cache<T>, object: &Arc<T>) {
    cache.delete(Part::default(), object, |_| ());
}
