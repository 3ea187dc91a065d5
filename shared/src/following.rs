//! Following resources: lists and watches, always or on demand, and the caches that they fill.

pub mod answers;
pub mod cache;
pub(crate) mod collection;
pub(crate) mod demand;
pub(crate) mod feed;
pub(crate) mod followed;
pub(crate) mod health;
pub mod informer;
pub(crate) mod reflector;
pub(crate) mod served;
pub(crate) mod source;
pub(crate) mod watched;
